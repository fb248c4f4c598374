"""Spans a second through our collector on one core, and its memory; beside the same binary with only a batch.

Both are saturated by the same senders in turn, each alone on one core: ours cleans, counts, samples and keeps, the
other one only batches. Refused requests (the memory limiter acts, or the queue is full) are not in the
counting, so what is reported went through. Where a core_busy_ratio is under one, the senders or other programs were
the limit, and CPU seconds per million spans say more.
"""

import os
import secrets
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import urllib3
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from inferwatch.stack import binaries, ports, processes, traces
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter, to_stderr
from inferwatch.stack.settings import HOST, Settings, default_settings
from inferwatch.stack.state import Record

BASE_PORT = 33000
WARM_SECONDS, RUN_SECONDS, PAIRS = 3.0, 10.0, 3
SENDERS = 2
TRACES_PER_REQUEST = 40
STAGES = ("embedding", "retrieval", "rerank", "assemble", "generate")


@dataclass
class Counted:
    """What the senders of one run saw."""

    spans: int = 0
    refused: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, spans: int, *, taken: bool) -> None:
        """One answer."""
        with self.lock:
            self.spans += spans if taken else 0
            self.refused += not taken


def run() -> dict[str, object]:
    """Measure both in turn, in pairs; the environment is production, where ours samples."""
    reporter = to_stderr()
    settings = default_settings(base_port=BASE_PORT)
    binary = binaries.resolve(traces.COLLECTOR, settings, reporter)
    core, senders = _cores()
    found: dict[str, list[Mapping[str, float]]] = {"ours": [], "batch only": []}
    with tempfile.TemporaryDirectory(prefix="inferwatch-bench-collector-") as folder:
        place = Settings(
            settings.root, Path(folder), settings.cache_dir, settings.spec_path, BASE_PORT, "production"
        )
        os.sched_setaffinity(0, senders)
        for pair in range(PAIRS):
            for name in found if pair % 2 == 0 else reversed(found):
                with reporter.task(f"{name}, run {pair + 1} of {PAIRS}"):
                    found[name].append(_measured(name, place, binary.path, core, reporter))
    ours, bare = found["ours"], found["batch only"]
    rate = _median(ours, "spans_per_second")
    return {
        "collector": binary.version,
        "runs": PAIRS,
        "seconds_a_run": RUN_SECONDS,
        "core": core,
        "senders_on_other_cores": senders != {core},
        "spans_per_second": round(rate),
        "spans_per_second_by_run": [round(one["spans_per_second"]) for one in ours],
        "cpu_seconds_per_million_spans": round(_median(ours, "cpu_seconds_per_million"), 1),
        "core_busy_ratio": round(_median(ours, "core_busy_ratio"), 2),
        "peak_rss_mib": round(max(one["peak_rss_mib"] for one in ours)),
        "memory_limit_mib": traces.COLLECTOR_MIB,
        "refused_requests": round(sum(one["refused"] for one in ours)),
        "batch_only_spans_per_second": round(_median(bare, "spans_per_second")),
        "batch_only_by_run": [round(one["spans_per_second"]) for one in bare],
        "batch_only_cpu_seconds_per_million_spans": round(_median(bare, "cpu_seconds_per_million"), 1),
        "batch_only_core_busy_ratio": round(_median(bare, "core_busy_ratio"), 2),
        "batch_only_peak_rss_mib": round(max(one["peak_rss_mib"] for one in bare)),
        "batch_only_refused_requests": round(sum(one["refused"] for one in bare)),
        "share_of_batch_only": round(rate / _median(bare, "spans_per_second"), 3),
    }


def _cores() -> tuple[int, set[int]]:
    """The collector's core, and those that are left for the senders; the same one when there is no other."""
    have = sorted(os.sched_getaffinity(0))
    return have[-1], set(have[:-1]) or {have[-1]}


def _median(runs: list[Mapping[str, float]], key: str) -> float:
    return statistics.median(one[key] for one in runs)


def _measured(
    name: str, settings: Settings, binary: Path, core: int, reporter: Reporter
) -> Mapping[str, float]:
    service = _service(name, settings, binary, core)
    with _running(service, settings, reporter) as record:
        process = psutil.Process(record.pid)
        port = settings.port("otlp-http")
        _load(port, WARM_SECONDS)
        before, started = sum(process.cpu_times()[:2]), time.monotonic()
        counted = _load(port, RUN_SECONDS, process)
        seconds = time.monotonic() - started
        cpu = sum(process.cpu_times()[:2]) - before
        return {
            "spans_per_second": counted.spans / seconds,
            "cpu_seconds_per_million": cpu / max(counted.spans, 1) * 1e6,
            "core_busy_ratio": cpu / seconds,
            "peak_rss_mib": _peak_mib(record.pid),
            "refused": counted.refused,
        }


def _service(name: str, settings: Settings, binary: Path, core: int) -> Service:
    """Ours as the launcher starts it in front of a file, or the same binary with only a batch to the same file."""
    kept = settings.data_dir / name.replace(" ", "-")
    kept.mkdir(parents=True, exist_ok=True)
    traces.write_files(settings)
    ours = traces.collector(settings, binary, traces.ALONE)
    env = {
        **ours.env,
        "INFERWATCH_TRACE_EXPORTERS": "[file/traces]",
        "INFERWATCH_TRACES_FILE": str(kept / "traces.jsonl"),
        "GOMAXPROCS": "1",
    }
    argv = ours.argv
    if name != "ours":
        config = kept / "config.yaml"
        config.write_text(yaml.safe_dump(_batch_only(settings, kept / "traces.jsonl")), encoding="utf-8")
        argv = (str(binary), "--config", str(config))
    service = Service(name="collector", argv=argv, url=ours.url, ready_path="/", env=env, cores=(core,))
    ports.require_free([service])
    return service


def _batch_only(settings: Settings, file: Path) -> dict[str, object]:
    return {
        "extensions": {"health_check": {"endpoint": f"{HOST}:{settings.port('collector')}"}},
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"{HOST}:{settings.port('otlp-http')}"}}}},
        "processors": {"batch": {"timeout": "200ms", "send_batch_size": 512, "send_batch_max_size": 2048}},
        "exporters": {"file": {"path": str(file), "rotation": {"max_megabytes": 50, "max_backups": 2}}},
        "service": {
            "extensions": ["health_check"],
            "telemetry": {"metrics": {"level": "none"}},
            "pipelines": {"traces": {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["file"]}},
        },
    }


@contextmanager
def _running(service: Service, settings: Settings, reporter: Reporter) -> Iterator[Record]:
    record = processes.start(service, settings.logs_dir)
    try:
        processes.wait_ready(service, record, reporter)
        yield record
    finally:
        processes.stop(record)


def _load(port: int, seconds: float, watched: psutil.Process | None = None) -> Counted:
    """Send as fast as answers come, from SENDERS connections."""
    counted, until = Counted(), time.monotonic() + seconds
    threads = [threading.Thread(target=_send, args=(port, until, counted)) for _ in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if counted.spans == 0:
        raise StackError(f"the collector on port {port} took no span in {seconds:g} s; see its log")
    if watched is not None and not watched.is_running():
        raise StackError("the collector ended under load; see its log")
    return counted


def _send(port: int, until: float, counted: Counted) -> None:
    headers = {"Content-Type": "application/x-protobuf"}
    template = request()
    spans = sum(len(s.spans) for r in template.resource_spans for s in r.scope_spans)
    with urllib3.PoolManager(maxsize=1, retries=False) as pool:
        while time.monotonic() < until:
            renew(template)
            answer = pool.request(
                "POST",
                f"http://{HOST}:{port}/v1/traces",
                body=template.SerializeToString(),
                headers=headers,
                timeout=urllib3.Timeout(total=30.0),
            )
            counted.add(spans, taken=answer.status == 200)


def request() -> ExportTraceServiceRequest:
    """A batch of traces as the RAG service makes them: a root and five stages each, with their attributes."""
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.append(_text("service.name", "rag"))
    scope = resource.scope_spans.add()
    for _ in range(TRACES_PER_REQUEST):
        scope.spans.append(
            _span("POST /v1/rag/answer", Span.SPAN_KIND_SERVER, {"gen_ai.request.model": "tiny"})
        )
        for stage in STAGES:
            more = {"rag.stage": stage, "openinference.span.kind": "CHAIN", "rag.embedding.version": "v1"}
            scope.spans.append(_span(f"rag {stage}", Span.SPAN_KIND_INTERNAL, more))
    return made


def renew(made: ExportTraceServiceRequest) -> None:
    """New trace ids and times: every trace is one that the sampler has not seen."""
    end = time.time_ns()
    spans = made.resource_spans[0].scope_spans[0].spans
    for start in range(0, len(spans), len(STAGES) + 1):
        trace = secrets.token_bytes(16)
        for at in range(start, start + len(STAGES) + 1):
            span = spans[at]
            span.trace_id, span.end_time_unix_nano = trace, end
            span.start_time_unix_nano = end - 20_000_000
            span.parent_span_id = b"" if at == start else spans[start].span_id


def _span(name: str, kind: Span.SpanKind.ValueType, more: Mapping[str, str]) -> Span:
    attributes = [_text(key, value) for key, value in more.items()]
    attributes.append(_text("gen_ai.prompt", "what a user asked and nobody shall read " * 4))
    attributes.append(KeyValue(key="rag.top_k", value=AnyValue(int_value=8)))
    return Span(span_id=secrets.token_bytes(8), name=name, kind=kind, attributes=attributes, status=Status())


def _text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))) / 1024
