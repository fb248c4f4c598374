"""Clock offsets by hand, and records of another host moved onto the master's time line."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from loadtests.clocks import Exchange, WorkerClock, aligned, best_offset, read_clocks, write_clock
from loadtests.records import RequestRecord

CLOCK = WorkerClock(1, "there", "here", 1000.0, 10.25, 0.002, 0.25, 9)


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
    """Sent at 5.5 of a clock that is 10.25 s behind the master's: 15.75. Unix time is by the master's wall clock."""
    ((moved),) = aligned([_record(1)], {1: CLOCK})

    assert (moved.sent_s, moved.wall_offset_s) == (15.75, 1000.0)
    assert moved.first_token_s is None
    assert moved.end_s - moved.scheduled_s == 1.0


def test_a_wall_clock_that_is_set_during_the_run_moves_nothing() -> None:
    """The worker's wall clock jumped by an hour between two requests: they stay 0 s apart."""
    before, after = _record(1), dataclasses.replace(_record(1), wall_offset_s=1010.0 + 3600)
    first, second = aligned([before, after], {1: CLOCK})

    assert first == second


def test_the_drift_of_a_run_is_part_of_the_error() -> None:
    """Offset 10.25 ± 0.002 s, at the end 10.26 ± 0.005 s: it grew by 10 ms, so the first was up to 15 ms wrong by then."""
    later = dataclasses.replace(CLOCK, offset_s=10.26, error_s=0.005)
    steady = dataclasses.replace(CLOCK, error_s=0.0001)

    assert CLOCK.until(later).drift_s == pytest.approx(0.01)
    assert CLOCK.until(later).error_s == pytest.approx(0.015)
    assert CLOCK.until(later).offset_s == 10.25
    assert CLOCK.until(steady).error_s == 0.002


def test_the_same_host_and_unmeasured_workers_stay() -> None:
    """One boot has one monotonic clock; a run of one process has no clock file."""
    same = dataclasses.replace(CLOCK, boot_id="here")

    assert list(aligned([_record(1), _record(2)], {1: same})) == [_record(1), _record(2)]


def test_file_round_trip(tmp_path: Path) -> None:
    """What a worker wrote is read back by its number."""
    write_clock(CLOCK, tmp_path)

    assert read_clocks(tmp_path) == {1: CLOCK}
