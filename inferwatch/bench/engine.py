"""What the engine exporter costs: CPU beside prometheus_client on one page, memory at 200 targets.

Both ways read the same recorded page, publish the same samples (checked before anything is timed) and
run in turn in one process. Memory is the real exporter process's peak over its idle size.
"""

import asyncio
import gzip
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import aiohttp
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from exporters.engine.labels import LabelCache
from exporters.engine.render import EngineVersion, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER
from slo.names import engine as names

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests/fixtures/engine/captures/vllm-0.32.0-cpu-metrics_light.txt.gz"
TARGETS = 200
_MAX_SERIES = 20_000
_ROUNDS = 101
_PROBE_ROUNDS = 5
_LISTENING = re.compile(rb"listening on (http://\S+)")
_START_WITHIN_S = 30.0

# vLLM 0.32's families -> ours, counters without _total as prometheus_client names them.
_FAMILIES = {
    "vllm:time_to_first_token_seconds": names.TIME_TO_FIRST_TOKEN_SECONDS,
    "vllm:inter_token_latency_seconds": names.INTER_TOKEN_LATENCY_SECONDS,
    "vllm:request_time_per_output_token_seconds": names.TIME_PER_OUTPUT_TOKEN_SECONDS,
    "vllm:e2e_request_latency_seconds": names.REQUEST_DURATION_SECONDS,
    "vllm:request_queue_time_seconds": names.REQUEST_QUEUE_SECONDS,
    "vllm:request_prefill_time_seconds": names.REQUEST_PREFILL_SECONDS,
    "vllm:request_decode_time_seconds": names.REQUEST_DECODE_SECONDS,
    "vllm:request_success": names.REQUESTS_TOTAL,
    "http_requests": names.HTTP_REQUESTS_TOTAL,
    "vllm:prompt_tokens": names.PROMPT_TOKENS_TOTAL,
    "vllm:generation_tokens": names.GENERATION_TOKENS_TOTAL,
    "vllm:prompt_tokens_cached_by_source": names.PROMPT_TOKENS_CACHED_TOTAL,
    "vllm:prefix_cache_queries": names.PREFIX_CACHE_QUERIED_TOKENS_TOTAL,
    "vllm:prefix_cache_hits": names.PREFIX_CACHE_HIT_TOKENS_TOTAL,
    "vllm:num_preemptions": names.PREEMPTIONS_TOTAL,
    "vllm:admission_rejections": names.ADMISSION_REJECTIONS_TOTAL,
    "vllm:num_requests_running": names.REQUESTS_RUNNING,
    "vllm:num_requests_waiting": names.REQUESTS_WAITING,
    "vllm:kv_cache_usage_perc": names.KV_CACHE_USAGE_RATIO,
    "vllm:iteration_tokens_total": names.ITERATION_TOKENS,
    "vllm:request_prompt_tokens": names.REQUEST_PROMPT_TOKENS,
    "vllm:request_generation_tokens": names.REQUEST_GENERATION_TOKENS,
}
_LABELS = {
    "model_name": names.LABEL_MODEL,
    "engine": names.LABEL_DP_RANK,
    "finished_reason": names.LABEL_FINISH_REASON,
    "status": names.LABEL_CODE,
    "handler": names.LABEL_HANDLER,
    "source": names.LABEL_SOURCE,
    "reason": names.LABEL_REASON,
    "le": "le",
}


class BenchError(RuntimeError):
    """The benchmark could not be run as stated; the text says why."""


def run() -> dict[str, object]:
    """Measure both and say what ran side by side. Needs Linux (/proc) and the repository's fixtures.

    Keys: cpu_ratio_vs_prometheus_client and rss_mb_over_idle_200_targets (MB = 1e6 bytes, peak), with
    what they were made of. Raises BenchError.
    """
    body = gzip.decompress(CAPTURE.read_bytes())
    return cpu(body) | asyncio.run(memory(body))


def cpu(body: bytes, rounds: int = _ROUNDS) -> dict[str, object]:
    """Median CPU of both ways over interleaved rounds, milliseconds."""
    cache = LabelCache()
    model = _published(_theirs(body))
    if _published(_ours(body, cache)) != model:
        raise BenchError("the two ways publish different samples of the same families; nothing was timed")
    ways: dict[str, Callable[[], bytes]] = {
        "ours": lambda: _ours(body, cache),
        "ours_cold": lambda: _ours(body, LabelCache()),
        "theirs": lambda: _theirs(body),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            begun = time.process_time_ns()
            way()
            spent[name].append((time.process_time_ns() - begun) / 1e6)
    median = {name: statistics.median(times) for name, times in spent.items()}
    return {
        "cpu_ratio_vs_prometheus_client": round(median["theirs"] / median["ours"], 1),
        "cpu_ratio_cold_cache": round(median["theirs"] / median["ours_cold"], 1),
        "cpu_ms_inferwatch": round(median["ours"], 3),
        "cpu_ms_prometheus_client": round(median["theirs"], 3),
        "capture_bytes": len(body),
        "samples_both": len(model),
        "rounds": rounds,
        "side_by_side": "exporters.engine translate + render against prometheus_client's text parser + "
        "generate_latest, same page, same families in and out, interleaved, process CPU time, median",
    }


def _ours(body: bytes, cache: LabelCache) -> bytes:
    reading = translate(body, ADAPTER, cache, "0.32.0", _MAX_SERIES)
    return render_reading(reading, EngineVersion("0.32.0"))


class _Reexposer(Collector):
    def __init__(self, body: bytes) -> None:
        self._body = body

    def collect(self) -> Iterator[Metric]:
        for family in text_string_to_metric_families(self._body.decode()):
            ours = _FAMILIES.get(family.name)
            if ours is None:
                continue
            stem = ours.removesuffix("_total")
            metric = Metric(stem, family.documentation, family.type)
            for sample in family.samples:
                labels = {_LABELS[key]: value for key, value in sample.labels.items() if key in _LABELS}
                if names.LABEL_MODEL not in labels:
                    labels[names.LABEL_MODEL] = "tiny"
                metric.add_sample(sample.name.replace(family.name, stem, 1), labels, sample.value)
            yield metric


def _theirs(body: bytes) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Reexposer(body))
    return generate_latest(registry)


def _published(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    wanted = {name.removesuffix("_total") for name in _FAMILIES.values()}
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        if family.name in wanted
        for sample in family.samples
    }


async def memory(body: bytes, targets: int = TARGETS, rounds: int = _PROBE_ROUNDS) -> dict[str, object]:
    """Peak memory of a real exporter over its idle size while `targets` are probed at once, several times."""
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "exporters", "engine", "--listen", "127.0.0.1:0"), cwd=ROOT, stderr=log
        )
        try:
            url = await _url(log)
            async with _engines(body, targets) as addresses, aiohttp.ClientSession() as session:
                await _own_endpoints(session, url)
                _status(process.pid, reset_peak=True)
                idle = _status(process.pid)["VmRSS"]
                seconds = [await _probe_all(session, url, addresses) for _ in range(rounds)]
                after = _status(process.pid)
        finally:
            process.terminate()
            await process.wait()
    return {
        f"rss_mb_over_idle_{targets}_targets": round((after["VmHWM"] - idle) / 1e6, 1),
        "rss_mb_idle": round(idle / 1e6, 1),
        "rss_mb_after": round(after["VmRSS"] / 1e6, 1),
        "probe_rounds": rounds,
        "seconds_a_round_of_all_targets": round(statistics.median(seconds), 2),
        "targets_distinct_models": targets,
    }


async def _url(log: IO[bytes]) -> str:
    deadline = time.monotonic() + _START_WITHIN_S
    while time.monotonic() < deadline:
        log.seek(0)
        found = _LISTENING.search(log.read())
        if found:
            return str(found[1].decode())
        await asyncio.sleep(0.05)
    raise BenchError(f"the exporter did not say where it listens within {_START_WITHIN_S:g} s")


@asynccontextmanager
async def _engines(body: bytes, count: int) -> AsyncIterator[list[str]]:
    """`count` servers on loopback ports, each with the page under a model name of its own."""
    pages = [body.replace(b'model_name="tiny"', b'model_name="tiny-%d"' % at) for at in range(count)]

    def handler(page: bytes) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            request = await reader.readuntil(b"\r\n\r\n")
            content = page if request.startswith(b"GET /metrics ") else b'{"version": "0.32.0"}'
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(content)
            writer.write(head + content)
            await writer.drain()
            writer.close()
            await writer.wait_closed()

        return answer

    servers = [await asyncio.start_server(handler(page), "127.0.0.1", 0) for page in pages]
    try:
        yield [f"127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers]
    finally:
        for server in servers:
            server.close()
            await server.wait_closed()


async def _own_endpoints(session: aiohttp.ClientSession, url: str) -> None:
    for path in ("/-/ready", "/metrics"):
        async with session.get(url + path) as response:
            response.raise_for_status()
            await response.read()


async def _probe_all(session: aiohttp.ClientSession, url: str, addresses: list[str]) -> float:
    async def one(address: str) -> None:
        async with session.get(f"{url}/probe", params={"target": address}) as response:
            text = await response.text()
        if f"{names.PROBE_SUCCESS} 1\n" not in text:
            raise BenchError(f"a probe of {address} failed: {text[:200]}")

    begun = time.monotonic()
    await asyncio.gather(*(one(address) for address in addresses))
    return time.monotonic() - begun


def _status(pid: int, reset_peak: bool = False) -> dict[str, int]:
    """VmRSS and VmHWM of a process, bytes; `reset_peak` first sets the peak to the present size."""
    folder = Path(f"/proc/{pid}")
    try:
        if reset_peak:
            (folder / "clear_refs").write_text("5")
        lines = (folder / "status").read_text().splitlines()
    except OSError as error:
        raise BenchError(f"{folder}: {error}; the memory part needs Linux") from error
    fields = (line.split() for line in lines if line.startswith(("VmRSS:", "VmHWM:")))
    return {name.rstrip(":"): int(kilobytes) * 1024 for name, kilobytes, *_ in fields}
