"""A reading, and how the probe went, to the text that Prometheus scrapes (format 0.0.4)."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from operator import add

from exporters.engine import families
from exporters.engine.exposition import escape
from exporters.engine.families import Family
from exporters.engine.probe_error import ProbeError
from exporters.engine.translate import Reading
from slo.names import engine as names

UNKNOWN_VERSION = "unknown"


@dataclass(frozen=True)
class EngineVersion:
    """What the engine says it is; `simulated` only if it says so itself."""

    version: str = UNKNOWN_VERSION
    simulated: bool = False


@dataclass(frozen=True)
class ProbeStats:
    """How a probe went. Bytes are decompressed bytes read; status is None when no answer came."""

    duration_s: float
    body_bytes: int
    status: int | None


def render_reading(reading: Reading, version: EngineVersion) -> bytes:
    """The engine's families: one HELP and TYPE each, samples grouped, values as the engine wrote them."""
    pieces: list[bytes] = []
    for block in reading.blocks:
        pieces.append(block.family.header)
        for suffix, samples in block.parts:
            start = _start(block.family.name + suffix)
            pieces.append(start)
            pieces.append((b"\n" + start).join(map(add, samples, samples.values())))
            pieces.append(b"\n")
    model = [(names.LABEL_MODEL, reading.model.decode())] if reading.model is not None else []
    about = [
        (names.LABEL_ENGINE, reading.adapter.name),
        (names.LABEL_VERSION, escape(version.version).decode()),
        (names.LABEL_SIMULATED, "true" if version.simulated else "false"),
    ]
    pieces.append(_gauge(families.INFO, [(_text(model + about), 1)]))
    return b"".join(pieces)


def render_probe(stats: ProbeStats, reading: Reading | None, failure: ProbeError | None) -> bytes:
    """The llm_probe_* families, in every answer; a failure's detail stands in a comment above them."""
    reasons = [
        (_text([(names.LABEL_REASON, reason)]), int(failure is not None and failure.reason == reason))
        for reason in names.PROBE_REASONS
    ]
    pieces = [
        _gauge(families.PROBE_SUCCESS, [("", int(failure is None))]),
        _gauge(families.PROBE_FAILURE, reasons),
        _gauge(families.PROBE_DURATION, [("", round(stats.duration_s, 6))]),
        _gauge(families.PROBE_BODY, [("", stats.body_bytes)]),
        _gauge(families.PROBE_SERIES, [("", reading.series if reading else 0)]),
        _gauge(families.PROBE_PARSE_ERRORS, [("", reading.parse_errors if reading else 0)]),
    ]
    if stats.status is not None:
        pieces.append(_gauge(families.PROBE_STATUS, [("", stats.status)]))
    if failure is not None:
        one_line = str(failure).encode("ascii", "backslashreplace").decode()
        one_line = "".join(c if c.isprintable() else " " for c in one_line)
        pieces.insert(0, f"# probe failed: {one_line}\n".encode())
    return b"".join(pieces)


def _gauge(family: Family, samples: Iterable[tuple[str, float]]) -> bytes:
    lines = [f"{family.name}{labels} {value}\n" for labels, value in samples]
    return family.header + "".join(lines).encode()


def _text(labels: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}"


@cache
def _start(name: str) -> bytes:
    return name.encode() + b"{"
