"""One request's life as one raw record, and the files that hold them: JSONL while the run goes on, Parquet after it.

All stamps are seconds of the client host's monotonic clock (CLOCK_MONOTONIC, the same for every process of a
host); adding `wall_offset_s` gives Unix time. `clock` says what stamped the reads: "kernel" (SO_TIMESTAMPNS,
the arrival of the last segment that the read returned), "monotonic" (after the read returned), or "mixed".
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

import orjson

Outcome = Literal["ok", "error", "aborted", "unfinished"]
OUTCOMES: tuple[Outcome, ...] = ("ok", "error", "aborted", "unfinished")


class RecordError(ValueError):
    """A record file cannot be read; the message names file, line and what is wrong."""


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One attempt of one request. None means: did not happen, or the server did not say; never zero instead.

    outcome: "ok"; "error"; "aborted" (this client hung up on purpose); "unfinished" (still running when the run
    was ended, so its latency is only known to be longer than `end_s - sent_s`).
    `scheduled_s` is when the arrival process wanted it sent, the same for every attempt; `started_s` when the client
    began on this one;
    `connected_s` when a new connection was ready (None if one was reused); `sent_s` just before the first byte
    was handed to the kernel; `first_token_s`/`last_token_s` the first and last non-empty text of any channel.
    `chunk_gaps_ns` are times between token-carrying chunks, in whole nanoseconds to keep them cheap to write.
    """

    worker: int
    seq: int
    attempt: int
    endpoint: str
    stream: bool
    tenant: str | None
    lane: str | None
    trace_id: str
    scheduled_s: float
    started_s: float
    connected_s: float | None
    sent_s: float | None
    first_byte_s: float | None
    first_token_s: float | None
    first_content_s: float | None
    last_token_s: float | None
    end_s: float
    wall_offset_s: float
    clock: str
    outcome: Outcome
    status: int | None
    finish_reason: str | None
    done_seen: bool
    error_kind: str | None
    error_type: str | None
    error_message: str | None
    will_retry: bool
    prompt_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    tokens_source: str | None
    asked_prompt_tokens: int | None
    asked_output_tokens: int | None
    chunks: int
    bytes_in: int
    chunk_gaps_ns: tuple[int, ...]
    text: str | None = None

    @property
    def ttft_s(self) -> float | None:
        """Sent to first token."""
        return _between(self.sent_s, self.first_token_s)

    @property
    def e2e_s(self) -> float | None:
        """Sent to the end of the answer; for requests that got one whole."""
        return _between(self.sent_s, self.end_s) if self.outcome == "ok" else None

    @property
    def latency_from_schedule_s(self) -> float | None:
        """Scheduled to the end of the answer: what a user waited, with a late client, back-off and connecting in it."""
        return self.end_s - self.scheduled_s if self.outcome == "ok" else None

    @property
    def tpot_s(self) -> float | None:
        """
        (last - first token) / (output tokens - 1) by the server's count.

        None for one token, one chunk, and where all chunks came in one read: how far apart they were is not known.
        """
        if self.tokens_source != "server" or self.chunks < 2 or (self.output_tokens or 0) < 2:
            return None
        span = _between(self.first_token_s, self.last_token_s)
        return None if not span or self.output_tokens is None else span / (self.output_tokens - 1)

    @property
    def connect_s(self) -> float | None:
        """Time to open a connection; None when one was reused."""
        return _between(self.started_s, self.connected_s)

    @property
    def schedule_delay_s(self) -> float:
        """How late the client sent (or began, when it never sent) against the schedule; connecting is the server's time."""
        sent = self.started_s if self.sent_s is None else self.sent_s - (self.connect_s or 0.0)
        return sent - self.scheduled_s

    @property
    def error_name(self) -> str | None:
        """What failures are grouped by: kind, and the server's type where it gave one."""
        return f"{self.error_kind}:{self.error_type}" if self.error_type else self.error_kind


FIELDS: tuple[str, ...] = tuple(field.name for field in fields(RequestRecord))
_values = attrgetter(*FIELDS)


def failures(last_tries: Iterable[RequestRecord], *, stopped: bool = False) -> tuple[int, int]:
    """Return how many requests failed, and of how many.

    An answer that had no end when the run's patience (`drain_s`) was over is a failed one; where the run itself was
    stopped, nobody knows. A planned hang-up is on neither side.
    """
    outcomes = Counter(record.outcome for record in last_tries)
    failed = outcomes["error"] + (0 if stopped else outcomes["unfinished"])
    return failed, failed + outcomes["ok"]


def _between(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def to_line(record: RequestRecord) -> str:
    """The record as one JSON line, newline included."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE).decode()


def from_mapping(values: dict[str, Any]) -> RequestRecord:
    """The inverse of `to_line`, from its parsed JSON or a Parquet row; raises TypeError on wrong keys."""
    return RequestRecord(**{**values, "chunk_gaps_ns": tuple(values["chunk_gaps_ns"])})


def read_jsonl(path: Path) -> Iterator[RequestRecord]:
    """Records of a file that a run wrote. A torn last line (the run was killed while writing) is left out."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return
            try:
                yield from_mapping(json.loads(line))
            except (ValueError, TypeError, KeyError) as error:
                raise RecordError(f"{path}:{number}: not a request record: {error}") from error


def read_parquet(path: Path) -> Iterator[RequestRecord]:
    """Records of a Parquet file written by `write_parquet`."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    missing = set(FIELDS) - set(file.schema_arrow.names)
    if missing:
        raise RecordError(f"{path}: not a file of request records: no column {sorted(missing)[0]!r}")
    for batch in file.iter_batches(columns=list(FIELDS)):
        yield from map(from_mapping, batch.to_pylist())


def write_parquet(records: Iterable[RequestRecord], path: Path, *, batch: int = 20_000) -> int:
    """Write all *records* to *path* (zstd), at most *batch* held at a time; returns how many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _arrow_schema()
    count = 0
    partial = path.with_suffix(".partial")
    with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for rows in _batches(records, batch):
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            count += len(rows)
    partial.replace(path)
    return count


def _batches(records: Iterable[RequestRecord], size: int) -> Iterator[list[dict[str, Any]]]:
    rows: list[dict[str, Any]] = []
    for record in records:
        rows.append(dict(zip(FIELDS, _values(record), strict=True)))
        if len(rows) == size:
            yield rows
            rows = []
    if rows:
        yield rows


def _arrow_schema() -> Any:
    import pyarrow as pa

    plain = {
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "str": pa.string(),
        "Outcome": pa.string(),
        "tuple[int, ...]": pa.list_(pa.int64()),
    }
    names = {bool: "bool", int: "int", float: "float", str: "str", Outcome: "Outcome"}
    types = (
        names.get(field.type) or str(field.type).removesuffix(" | None") for field in fields(RequestRecord)
    )
    return pa.schema([(name, plain[kind]) for name, kind in zip(FIELDS, types, strict=True)])


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile of an ascending, non-empty sequence: the smallest sample with that share at or below.

    The result is always a value that happened. *percent* is in (0, 100].
    """
    if not ordered:
        raise ValueError("no samples: a percentile of nothing is not a number")
    if not 0 < percent <= 100:
        raise ValueError(f"percent: {percent} is not in (0, 100]")
    rank = math.ceil(round(len(ordered) * percent / 100, 9))
    return ordered[max(rank, 1) - 1]


def percentile_with_cut(ordered: Sequence[float], cut: Sequence[float], percent: float) -> float | None:
    """Percentile of a duration of which some samples are only known to be longer than they were when cut off.

    Kaplan and Meier's estimate from ascending *ordered* and *cut*; the nearest rank when nothing was cut, None
    when the percentile lies beyond what was seen to its end.
    """
    if not cut:
        return percentile(ordered, percent)
    at_risk, survival, gone = len(ordered) + len(cut), 1.0, 0
    wanted = 1 - percent / 100 + 1e-12
    for value in ordered:
        while gone < len(cut) and cut[gone] < value:
            gone += 1
            at_risk -= 1
        survival *= 1 - 1 / at_risk
        at_risk -= 1
        if survival <= wanted:
            return value
    return None
