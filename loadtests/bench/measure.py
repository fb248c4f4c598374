"""Clients, loads and the truth -> what each client reached and how wrong its clock was, side by side in one run."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from loadtests.bench.mock import BenchError, Certificate, Truth, build, certificate, serving
from loadtests.bench.tools import TOOLS, Load, Said, installed
from loadtests.records import percentile

OURS = "inferwatch"
REQUESTS = Load(chunks=16, seconds=6, users=640)  # TTFT 20 ms, 5 ms between: at most about 6,700 requests/s
CHUNKS = Load(chunks=200, seconds=6, users=160)  # 2 ms between: at most 80,000 chunks/s
SHARES = (0.2, 0.5, 0.75)
TLS_SHARE = 0.5
OPEN_SECONDS = 6.0


def cores() -> tuple[int, int]:
    """The server's and the client's: the last two there are, since interrupts most often come to the first."""
    known = sorted(os.sched_getaffinity(0))
    if len(known) < 2:
        raise BenchError("one core for the server and one for the client are needed, here is one")
    return known[-2], known[-1]


def run(say: Callable[[str], None], names: Sequence[str] | None = None) -> dict[str, Any]:
    """Every installed client under the same loads; peers that fail are shown with why."""
    found: dict[str, Any] = {"server": "server.c, its own core; one core a client", "clients": {}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        binary = build(folder)
        for name in names or installed():
            say(f"{name}: highest rates, then open loop at {', '.join(f'{share:.0%}' for share in SHARES)}")
            found["clients"][name] = _or_why(partial(_client, name, binary, folder / name))
            say(f"{name}: the same over TLS")
            found["clients"][name]["tls"] = _or_why(partial(_over_tls, name, folder))
        say(f"{OURS}: at the rates of the others")
        found["at_the_same_rates"] = _at_the_same_rates(found["clients"], binary, folder)
    return found


def _at_the_same_rates(clients: Mapping[str, Any], binary: Path, folder: Path) -> list[dict[str, Any]]:
    """Our errors beside each peer's, at each rate at which the peer was measured."""
    lines = []
    for name, figures in clients.items():
        for share, theirs in figures.get("open_loop", {}).items() if name != OURS else ():
            load = Load(chunks=16, seconds=OPEN_SECONDS, rate=theirs["rate"])
            ours = _or_why(
                partial(_measure, OURS, load, binary, folder / f"{OURS}-as-{name}-{share}", 0.020, 0.005)
            )
            found = ours if "error" in ours else exacter(ours, theirs)
            lines.append({"peer": name, "rate": load.rate} | found)
    return lines


def exacter(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Each error as a pair, ours first, and the names of those in which the peer's is smaller."""
    pairs, smaller = {}, []
    for what in ("ttft_bias_ms", "gap_error_us", "schedule_delay_ms"):
        for which in ("p50", "p99"):
            mine, other = ((one.get(what) or {}).get(which) for one in (ours, theirs))
            if mine is None or other is None:
                continue
            pairs[f"{what} {which}"] = (mine, other)
            if abs(other) < abs(mine):
                smaller.append(f"{what} {which}")
    return {"ours_and_theirs": pairs, "theirs_is_smaller": smaller}


def _or_why(measured: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return measured()
    except BenchError as error:
        return {"error": str(error)}


def _client(name: str, binary: Path, folder: Path) -> dict[str, Any]:
    requests = _requests(name, binary, folder)
    chunks = _measure(name, CHUNKS, binary, folder / "chunks", 0.002, 0.002)
    return {
        "max_requests_per_s": requests["requests_per_s"],
        "max_chunks_per_s": chunks["chunks_per_s"],
        "failed": requests["failed"] + chunks["failed"],
        "cpu_ms_per_request": requests["cpu_ms_per_request"],
        "open_loop": _open_loop(name, requests["requests_per_s"], SHARES, binary, folder),
    }


def _over_tls(name: str, folder: Path) -> dict[str, Any]:
    """The highest request rate, and errors at half of it; a chunk is stamped before it is encrypted."""
    binary, shown = build(folder, tls=True), certificate(folder / "tls")
    requests = _requests(name, binary, folder / name / "tls", shown)
    return {
        "max_requests_per_s": requests["requests_per_s"],
        "failed": requests["failed"],
        "cpu_ms_per_request": requests["cpu_ms_per_request"],
        "open_loop": _open_loop(
            name, requests["requests_per_s"], (TLS_SHARE,), binary, folder / name / "tls", shown
        ),
    }


def _requests(name: str, binary: Path, folder: Path, shown: Certificate | None = None) -> dict[str, Any]:
    return _measure(name, REQUESTS, binary, folder / "requests", 0.020, 0.005, shown)


def _open_loop(
    name: str, highest: float, shares: Sequence[float], binary: Path, folder: Path,
    shown: Certificate | None = None,
) -> dict[str, Any]:  # fmt: skip
    loads = {share: Load(chunks=16, seconds=OPEN_SECONDS, rate=max(1.0, share * highest)) for share in shares}
    return {
        f"{share:.0%}": {
            "rate": load.rate,
            **_measure(name, load, binary, folder / f"open-{share:g}", 0.020, 0.005, shown),
        }
        for share, load in loads.items()
    }


def _measure(
    name: str, load: Load, binary: Path, folder: Path, ttft_s: float, gap_s: float,
    shown: Certificate | None = None,
) -> dict[str, Any]:  # fmt: skip
    server_core, tool_core = cores()
    with serving(binary, ttft_s, gap_s, server_core, shown) as truth:
        said = TOOLS[name](load, truth, folder, tool_core)
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
