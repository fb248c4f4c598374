"""Clock offsets by hand, and records of another host moved onto the master's time line."""

from pathlib import Path
from typing import Any

from loadtests.clocks import Exchange, WorkerClock, aligned, best_offset, read_clocks, write_clock
from loadtests.records import RequestRecord

CLOCK = WorkerClock(1, "there", "here", 1000.0, 0.25, 0.002, 9)


def _record(worker: int) -> RequestRecord:
    values: dict[str, Any] = dict.fromkeys(RequestRecord.__dataclass_fields__)
    values |= {"worker": worker, "scheduled_s": 5.0, "started_s": 5.0, "sent_s": 5.5, "end_s": 6.0}
    return RequestRecord(**{**values, "wall_offset_s": 1010.0, "chunk_gaps_ns": ()})


def test_the_quickest_exchange_decides() -> None:
    """Asked at 10.0, answered at 10.2, master said 12.0: offset 1.9, wrong by at most 0.1 s; a slower one is no help."""
    offset, error = best_offset([Exchange(10.0, 12.0, 10.2), Exchange(20.0, 25.0, 24.0)])

    assert abs(offset - 1.9) < 1e-9
    assert abs(error - 0.1) < 1e-9


def test_another_hosts_stamps_move_and_its_gaps_do_not() -> None:
    """Worker wall = 5.5 + 1010 = 1015.5, master wall = 1015.75, so 15.75 on the master's monotonic clock."""
    ((moved),) = aligned([_record(1)], {1: CLOCK})

    assert (moved.sent_s, moved.wall_offset_s) == (15.75, 1000.0)
    assert moved.first_token_s is None
    assert moved.end_s - moved.scheduled_s == 1.0


def test_the_same_host_and_unmeasured_workers_stay() -> None:
    """One boot has one monotonic clock; a run of one process has no clock file."""
    same = WorkerClock(1, "here", "here", 1000.0, 0.25, 0.002, 9)

    assert list(aligned([_record(1), _record(2)], {1: same})) == [_record(1), _record(2)]


def test_file_round_trip(tmp_path: Path) -> None:
    """What a worker wrote is read back by its number."""
    write_clock(CLOCK, tmp_path)

    assert read_clocks(tmp_path) == {1: CLOCK}
