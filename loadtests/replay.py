"""A public request trace (Azure LLM inference CSV, BurstGPT CSV, Mooncake JSONL) -> requests with times and lengths."""

import csv
import json
import math
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from loadtests.lengths import MOST_TOKENS
from loadtests.plan import Arrival
from loadtests.workload import Due

Format = Literal["azure", "burstgpt", "mooncake"]


class TraceError(ValueError):
    """The trace cannot be replayed; the message names file, line, value and mend."""


def read_trace(path: Path, kind: Format, *, speed: float = 1.0) -> Iterator[Due]:
    """Requests in the order of the file, times counted from its first one and divided by *speed*.

    A request with no answer tokens in the trace (BurstGPT writes failures so) is left out. Raises TraceError
    for a file that is not what *kind* says, or whose times run backwards.
    """
    try:
        lines = path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    first: float | None = None
    last = 0.0
    with lines:
        for number, row in _rows(lines, kind, path):
            try:
                at, due = _READERS[kind](row)
                counts = due.prompt_tokens or 0, due.output_tokens or 0
                if not math.isfinite(at) or min(counts) < 0 or max(counts) > MOST_TOKENS:
                    raise ValueError(f"times are finite and counts from 0 to {MOST_TOKENS}")
            except (KeyError, ValueError, TypeError, AttributeError, OverflowError) as error:
                wanted = _WANTED[kind]
                raise TraceError(
                    f"{path}:{number}: {error!r}: not a {kind} row; it needs {wanted}"
                ) from error
            first = at if first is None else first
            offset = (at - first) / speed
            if offset < last:
                raise TraceError(f"{path}:{number}: {at}: earlier than the row before; sort the file by time")
            last = offset
            if due.output_tokens:
                yield due._replace(at_s=offset)
    if first is None:
        raise TraceError(f"{path}: holds no request")


def trace_of(arrival: Arrival) -> Iterator[Due]:
    """The requests of a plan's trace; see `read_trace`."""
    assert arrival.trace_path is not None and arrival.trace_format is not None  # the plan checks it
    return read_trace(Path(arrival.trace_path), arrival.trace_format, speed=arrival.speed)


class TraceRate:
    """Requests in the order of their times -> how many a second are wanted, over the *window_s* seconds before."""

    def __init__(self, requests: Iterator[Due], window_s: float) -> None:
        self._requests, self._window_s = requests, window_s
        self._next = next(requests, None)
        self._recent: deque[float] = deque()

    def at(self, at_s: float) -> float | None:
        """The rate *at_s* seconds after the start, never asked for an earlier time than before.

        None after the last request. Reads the trace as far as that; raises what reading it raises.
        """
        while self._next is not None and self._next.at_s <= at_s:
            self._recent.append(self._next.at_s)
            self._next = next(self._requests, None)
        if self._next is None or at_s <= 0:
            return None
        while self._recent and self._recent[0] <= at_s - self._window_s:
            self._recent.popleft()
        return len(self._recent) / min(self._window_s, at_s)


def _rows(lines: Any, kind: Format, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        yield from _parsed(lines, kind, path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"{path}: {error}: not a text file of rows; write it as UTF-8") from error


def _parsed(lines: Any, kind: Format, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if kind == "mooncake":
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise TraceError(f"{path}:{number}: not JSON: {error}") from error
                yield number, row
    else:
        yield from enumerate(csv.DictReader(lines), 2)


def _azure(row: dict[str, Any]) -> tuple[float, Due]:
    stamp = datetime.fromisoformat(row["TIMESTAMP"].strip())  # of seven digits of a second it reads six
    at = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()
    return at, Due(0.0, int(row["ContextTokens"]), int(row["GeneratedTokens"]))


def _burstgpt(row: dict[str, Any]) -> tuple[float, Due]:
    tokens = int(row["Request tokens"]), int(row["Response tokens"])
    return float(row["Timestamp"]), Due(0.0, *tokens)


def _mooncake(row: dict[str, Any]) -> tuple[float, Due]:
    blocks = tuple(int(block) for block in row.get("hash_ids", ()))
    return row["timestamp"] / 1000, Due(0.0, int(row["input_length"]), int(row["output_length"]), blocks)


_READERS: dict[Format, Callable[[dict[str, Any]], tuple[float, Due]]] = {
    "azure": _azure,
    "burstgpt": _burstgpt,
    "mooncake": _mooncake,
}
_WANTED: dict[Format, str] = {
    "azure": "TIMESTAMP, ContextTokens, GeneratedTokens",
    "burstgpt": "Timestamp, Request tokens, Response tokens",
    "mooncake": "timestamp (ms), input_length, output_length, hash_ids",
}
