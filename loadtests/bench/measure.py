"""Clients, loads and the truth -> what each client reached and how wrong its clock was, side by side in one run."""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from loadtests.bench.mock import BenchError, Truth, build, serving
from loadtests.bench.tools import TOOLS, Load, Said, installed
from loadtests.records import percentile

SERVER_CORE, TOOL_CORE = 0, 1
REQUESTS = Load(chunks=16, seconds=6, users=640)  # TTFT 20 ms, 5 ms between: at most about 6,700 requests/s
CHUNKS = Load(chunks=200, seconds=6, users=160)  # 2 ms between: at most 80,000 chunks/s
SHARES = (0.2, 0.5, 0.75)
OPEN_SECONDS = 6.0


def run(say: Callable[[str], None], names: Sequence[str] | None = None) -> dict[str, Any]:
    """Every installed client under the same loads; peers that fail are shown with why."""
    found: dict[str, Any] = {"server": "server.c, its own core; one core a client", "clients": {}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        binary = build(folder)
        for name in names or installed():
            say(f"{name}: highest rates, then open loop at {', '.join(f'{share:.0%}' for share in SHARES)}")
            try:
                found["clients"][name] = _client(name, binary, folder / name)
            except BenchError as error:
                found["clients"][name] = {"error": str(error)}
    return found


def _client(name: str, binary: Path, folder: Path) -> dict[str, Any]:
    requests = _measure(name, REQUESTS, binary, folder / "requests", 0.020, 0.005)
    chunks = _measure(name, CHUNKS, binary, folder / "chunks", 0.002, 0.002)
    shown: dict[str, Any] = {
        "max_requests_per_s": requests["requests_per_s"],
        "max_chunks_per_s": chunks["chunks_per_s"],
        "failed": requests["failed"] + chunks["failed"],
        "cpu_ms_per_request": requests["cpu_ms_per_request"],
        "open_loop": {},
    }
    for share in SHARES:
        load = Load(chunks=16, seconds=OPEN_SECONDS, rate=max(1.0, share * requests["requests_per_s"]))
        one = _measure(name, load, binary, folder / f"open-{share:g}", 0.020, 0.005)
        shown["open_loop"][f"{share:.0%}"] = {"rate": load.rate, **one}
    return shown


def _measure(
    name: str, load: Load, binary: Path, folder: Path, ttft_s: float, gap_s: float
) -> dict[str, Any]:
    with serving(binary, ttft_s, gap_s, SERVER_CORE) as truth:
        said = TOOLS[name](load, truth.url, folder, TOOL_CORE)
    return compare(said, truth)


def compare(said: Said, truth: Truth) -> dict[str, Any]:
    """Reached rates by the server's log; errors of TTFT and gaps, each in the unit of its name.

    Where requests can be matched by id the error is of each request; else of each percentile, reported minus true.
    """
    sent = list(truth.requests.values())
    if not sent or not said.ttft_s:
        raise BenchError("no request was answered")
    first, last = min(one.received_ns for one in sent), max(one.sent_ns[-1] for one in sent)
    span_s = (last - first) / 1e9
    chunks = sum(len(one.sent_ns) for one in sent)
    figures: dict[str, Any] = {
        "requests": len(sent),
        "failed": said.failed,
        "requests_per_s": len(sent) / span_s,
        "chunks_per_s": chunks / span_s,
        "cpu_ms_per_request": said.cpu_s * 1e3 / len(sent),
        "server_cpu_ratio": truth.cpu_s / span_s,
        "matched": bool(said.by_id),
    }
    figures |= _by_id(said, truth) if said.by_id else _by_percentile(said, truth)
    if said.delays_s:
        delays = sorted(said.delays_s)
        figures["schedule_delay_ms"] = {f"p{p}": percentile(delays, p) * 1e3 for p in (50, 99)}
    return figures


def _by_id(said: Said, truth: Truth) -> dict[str, Any]:
    pairs = [(said.by_id[key], truth.requests[key]) for key in said.by_id if key in truth.requests]
    bias = sorted(mine[0] - true.ttft_s for mine, true in pairs)
    gaps = sorted(
        abs(gap - real) for mine, true in pairs for gap, real in zip(mine[1], true.gaps_s, strict=False)
    )
    return _errors(bias, gaps)


def _by_percentile(said: Said, truth: Truth) -> dict[str, Any]:
    mine, true = sorted(said.ttft_s), sorted(one.ttft_s for one in truth.requests.values())
    figures = {f"p{p}": (percentile(mine, p) - percentile(true, p)) * 1e3 for p in (50, 99)}
    shown: dict[str, Any] = {"ttft_bias_ms": figures, "gap_error_us": None}
    if said.gaps_s:
        gaps, real = sorted(said.gaps_s), sorted(gap for one in truth.requests.values() for gap in one.gaps_s)
        shown["gap_error_us"] = {
            f"p{p}": abs(percentile(gaps, p) - percentile(real, p)) * 1e6 for p in (50, 99)
        }
    return shown


def _errors(bias: list[float], gaps: list[float]) -> dict[str, Any]:
    return {
        "ttft_bias_ms": {f"p{p}": percentile(bias, p) * 1e3 for p in (50, 99)},
        "gap_error_us": {f"p{p}": percentile(gaps, p) * 1e6 for p in (50, 99)} if gaps else None,
    }
