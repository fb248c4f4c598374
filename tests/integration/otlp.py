"""What the collector's tests share: spans and logs as OTLP/JSON, a real collector on free ports, what it wrote."""

import json
import os
import secrets
import socket
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferwatch.stack import binaries, processes
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.settings import default_settings
from inferwatch.stack.state import Record

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "otel-collector" / "config.yaml"
OK, ERROR = 0, 2
SERVER, CLIENT = 2, 3
Json = dict[str, Any]


def binary(tool: str) -> Path:
    """The pinned tool, built when the cache has none."""
    return binaries.resolve(tool, default_settings(), to_stderr()).path


def value(of: object) -> Json:
    """An attribute's value."""
    if isinstance(of, bool):
        return {"boolValue": of}
    if isinstance(of, int):
        return {"intValue": str(of)}
    if isinstance(of, float):
        return {"doubleValue": of}
    if isinstance(of, list):
        return {"arrayValue": {"values": [value(one) for one in of]}}
    if isinstance(of, dict):
        return {"kvlistValue": {"values": attributes(of)}}
    return {"stringValue": str(of)}


def attributes(of: Mapping[str, object]) -> list[Json]:
    """Attributes."""
    return [{"key": key, "value": value(one)} for key, one in of.items()]


def span(
    name: str,
    *,
    trace: str = "",
    seconds: float = 0.01,
    status: int = OK,
    parent: str = "",
    kind: int = SERVER,
    more: Mapping[str, object] | None = None,
    **of: Any,
) -> Json:
    """A span that ended now; *more* are its attributes, other words stand in it as they are."""
    end = time.time_ns()
    return {
        "traceId": trace or secrets.token_hex(16),
        "spanId": secrets.token_hex(8),
        "parentSpanId": parent,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(end - round(seconds * 1e9)),
        "endTimeUnixNano": str(end),
        "attributes": attributes(more or {}),
        "status": {"code": status},
        **of,
    }


def traces(spans: list[Json], service: str = "rag", **resource: object) -> Json:
    """A request with these spans of one resource."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": attributes({"service.name": service, **resource})},
                "scopeSpans": [{"scope": {"name": "test"}, "spans": spans}],
            }
        ]
    }


def post(port: int, signal: str, body: Json) -> int:
    """Send as an exporter does: again after 503 or while nobody listens; the answer's status."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/{signal}",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    for wait in (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0):
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 503:
                return error.code
        except (urllib.error.URLError, ConnectionError):
            pass  # not there at the moment: what exporters live with
        time.sleep(wait)
    raise AssertionError(f"nobody took {signal} on port {port}")


def get(url: str, accept: str = "*/*") -> str:
    """A page's text."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def until(reached: Callable[[], bool], seconds: float, what: str) -> None:
    """Wait for *reached*; AssertionError that says *what* was waited for."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"after {seconds:g} s still not: {what}"
        time.sleep(0.2)


def total(page: str, name: str, **labels: str) -> float:
    """Sum of the series of *name* on a metrics page that carry these labels; 0 while there are none."""
    found = 0.0
    for line in page.splitlines():
        series, _, rest = line.partition(" ")
        if series.split("{")[0] == name and all(f'{key}="{one}"' in series for key, one in labels.items()):
            found += float(rest.split(" ")[0])
    return found


def free_ports(count: int) -> list[int]:
    """Loopback ports that nothing holds now."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


@dataclass(frozen=True)
class Collector:
    """A running collector; *http* takes OTLP, *spans* shows what was made of it, *folder* holds what it wrote."""

    folder: Path
    http: int
    grpc: int
    spans: int
    self_port: int
    record: Record

    def send(self, *spans: Json, service: str = "rag", **resource: object) -> None:
        """Spans, taken with 200."""
        assert post(self.http, "traces", traces(list(spans), service, **resource)) == 200

    def written(self) -> list[Json]:
        """Spans in its traces file, each with its resource's attributes under ``resource``."""
        return list(_spans(self.folder / "traces.jsonl"))

    def names(self) -> set[str]:
        """Names of the spans that were kept."""
        return {one["name"] for one in self.written()}

    def metrics(self) -> str:
        """What Prometheus would scrape, with exemplars."""
        return get(f"http://127.0.0.1:{self.spans}/metrics", "application/openmetrics-text;version=1.0.0")

    def sample(self, name: str, **labels: str) -> float:
        """Sum of the series of *name* that carry these labels; 0 while there are none."""
        return total(self.metrics(), name, **labels)

    def said(self) -> str:
        """Everything that it wrote anywhere: files, queue, log, both metrics pages."""
        pages = [self.metrics(), get(f"http://127.0.0.1:{self.self_port}/metrics")]
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        return "\n".join([*pages, *(path.read_bytes().decode("latin-1") for path in files)])


def _spans(file: Path) -> Iterator[Json]:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            of = plain(resource["resource"].get("attributes", []))
            for scope in resource["scopeSpans"]:
                for one in scope["spans"]:
                    yield {**one, "resource": of, "attributes": plain(one.get("attributes", []))}


def plain(found: list[Json]) -> Json:
    """Attributes as a mapping; numbers stay as OTLP/JSON has them."""
    return {one["key"]: next(iter(one["value"].values()), None) for one in found}


@contextmanager
def collector(
    folder: Path, *, environment: str = "staging", settle: str = "1s", **env: str
) -> Iterator[Collector]:
    """Run the real collector with the shipped configuration, writing to files; a trace is judged after *settle*."""
    http, grpc, spans, self_port, health = free_ports(5)
    folder.mkdir(parents=True, exist_ok=True)
    service = Service(
        name="collector",
        argv=(
            str(binary("otelcol-inferwatch")),
            *("--config", str(CONFIG)),
            *("--config", f"yaml:processors::tail_sampling::decision_wait_after_root_received: {settle}"),
            *("--config", "yaml:processors::tail_sampling::decision_wait: 4s"),
        ),
        url=f"http://127.0.0.1:{health}",
        ready_path="/",
        env={
            "INFERWATCH_ENVIRONMENT": environment,
            "INFERWATCH_OTLP_HTTP_PORT": str(http),
            "INFERWATCH_OTLP_GRPC_PORT": str(grpc),
            "INFERWATCH_SPANS_PORT": str(spans),
            "INFERWATCH_SELF_PORT": str(self_port),
            "INFERWATCH_HEALTH_PORT": str(health),
            "INFERWATCH_TRACE_EXPORTERS": "[file/traces]",
            "INFERWATCH_TRACES_FILE": str(folder / "traces.jsonl"),
            "INFERWATCH_LOGS_FILE": str(folder / "logs.jsonl"),
            "INFERWATCH_QUEUE_DIR": str(folder / "queue"),
            **env,
        },
    )
    record = processes.start(service, folder / "log")
    try:
        processes.wait_ready(service, record, to_stderr())
        yield Collector(folder, http, grpc, spans, self_port, record)
    finally:
        processes.stop(record)


@contextmanager
def running(service: Service, folder: Path) -> Iterator[Record]:
    """Run one more process, ended with the block."""
    record = processes.start(service, folder / "log")
    try:
        processes.wait_ready(service, record, to_stderr())
        yield record
    finally:
        processes.stop(record)


def prometheus(folder: Path, rules: Json) -> Service:
    """A real Prometheus that judges *rules* every second and scrapes nothing."""
    (port,) = free_ports(1)
    (folder / "rules.yaml").write_text(json.dumps(rules))
    config = {"global": {"evaluation_interval": "1s"}, "rule_files": [str(folder / "rules.yaml")]}
    (folder / "prometheus.yaml").write_text(json.dumps(config))
    return Service(
        name="prometheus",
        argv=(
            str(binary("prometheus")),
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ),
        url=f"http://127.0.0.1:{port}",
        ready_path="/-/ready",
    )


def watcher(folder: Path, file: Path, url: str) -> Service:
    """The watcher of firing models as the launcher starts it."""
    (port,) = free_ports(1)
    return Service(
        name="firing",
        argv=(
            *(sys.executable, "-m", "inferwatch.collector.firing", "--listen", f"127.0.0.1:{port}"),
            *("--prometheus", url, "--file", str(file), "--state", str(folder / "state.json")),
            *("--sampler", "collector"),
        ),
        url=f"http://127.0.0.1:{port}",
        ready_path="/-/healthy",
    )


def signal(record: Record, number: int) -> None:
    """Signal a process of ours."""
    os.kill(record.pid, number)
