"""Clocks of load workers against the master's -> how far apart, how sure, and records put on one time line.

Processes of one host share its monotonic clock (same boot id), so their stamps need nothing. Workers of other
hosts ask a few times what the master's monotonic clock says; the quickest answer gives the offset, and half its
round trip is the most it can be wrong by. They ask again at the end: what the clocks drifted apart meanwhile is part of
the stated error. Wall clocks, which may be set or steered while the run goes on, move no stamp.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from loadtests.recorder_files import clock_file
from loadtests.records import RequestRecord

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_STAMPS = (
    "scheduled_s", "started_s", "connected_s", "sent_s", "first_byte_s", "first_token_s", "first_content_s",
    "last_token_s", "end_s",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class WorkerClock:
    """`offset_s`: what must be added to the worker's monotonic stamps to get the master's; at most `error_s` wrong.

    `wall_offset_s` is the same between their wall clocks, `drift_s` by how much offset_s grew until the end of the run
    (None: not measured again), `master_wall_offset_s` the master's Unix minus monotonic time.
    """

    worker: int
    boot_id: str
    master_boot_id: str
    master_wall_offset_s: float
    offset_s: float
    error_s: float
    wall_offset_s: float
    asked: int
    drift_s: float | None = None

    @property
    def same_host(self) -> bool:
        """True when worker and master count on the same monotonic clock."""
        return bool(self.boot_id) and self.boot_id == self.master_boot_id

    def until(self, later: "WorkerClock") -> "WorkerClock":
        """This clock with what *later*, measured at the end of the run, says of its drift."""
        drift_s = later.offset_s - self.offset_s
        error_s = max(self.error_s, abs(drift_s) + later.error_s)
        return dataclasses.replace(self, drift_s=drift_s, error_s=error_s)


@dataclasses.dataclass(frozen=True, slots=True)
class Exchange:
    """One question: monotonic clock when asked and when answered (worker's), and what the master's said; seconds."""

    asked_s: float
    master_s: float
    answered_s: float


def boot_id() -> str:
    """This host's boot, which tells hosts apart and one uptime from the next; "" where the system has none."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""


def best_offset(exchanges: Iterable[Exchange]) -> tuple[float, float]:
    """(offset, largest error) of the exchange with the shortest round trip."""
    quickest = min(exchanges, key=lambda one: one.answered_s - one.asked_s)
    middle = (quickest.asked_s + quickest.answered_s) / 2
    return quickest.master_s - middle, (quickest.answered_s - quickest.asked_s) / 2


def write_clock(clock: WorkerClock, folder: Path) -> None:
    """Keep a worker's clock beside its records."""
    text = json.dumps(dataclasses.asdict(clock)) + "\n"
    clock_file(folder, clock.worker).write_text(text, encoding="utf-8")


def read_clocks(folder: Path) -> dict[int, WorkerClock]:
    """Clocks by worker; empty for a run of one process."""
    found = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("clock-*.json")))
    return {clock["worker"]: WorkerClock(**clock) for clock in found}


def aligned(records: Iterable[RequestRecord], clocks: dict[int, WorkerClock]) -> Iterator[RequestRecord]:
    """Records with their stamps on the master's monotonic clock; those of its own host as they are."""
    for record in records:
        clock = clocks.get(record.worker)
        if clock is None or clock.same_host:
            yield record
            continue
        moved: dict[str, Any] = {
            name: value + clock.offset_s for name in _STAMPS if (value := getattr(record, name)) is not None
        }
        yield dataclasses.replace(record, **moved, wall_offset_s=clock.master_wall_offset_s)
