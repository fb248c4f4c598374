"""Time zero: shortly, on the minute, and the same for all workers of a folder."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loadtests.startline import StartError, time_zero

MINUTE = 1_800_000_060.0  # divides by 60


def test_one_worker_begins_shortly_and_leaves_no_file(tmp_path: Path) -> None:
    """Within a second of now."""
    assert 100 <= time_zero(tmp_path, 1, clock=lambda: 100.0) <= 101
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("now", "begins"), [(-42.7, 0), (-5, 0), (-0.05, 60), (17.3, 60)])
@pytest.mark.parametrize("workers", [1, 3])
def test_on_the_minute(tmp_path: Path, now: float, begins: float, workers: int) -> None:
    """The next full minute of the wall clock; one that is too near to be ready for is let go."""
    zero = time_zero(tmp_path, workers, on_the_minute=True, clock=lambda: MINUTE + now)

    assert zero == MINUTE + begins


def test_the_first_worker_decides_for_those_on_both_sides_of_a_minute(tmp_path: Path) -> None:
    """One comes 2 s before the minute, the other a moment after it: both begin at that minute."""
    first, second = (
        time_zero(tmp_path, 2, on_the_minute=True, clock=lambda late=late: MINUTE + late)
        for late in (-2.0, 0.1)
    )

    assert first == MINUTE == second
    assert [path.name for path in tmp_path.iterdir()] == ["start"]


def test_workers_at_once_agree(tmp_path: Path) -> None:
    """Sixteen at a time, each with a time of its own in mind: one answer."""
    with ThreadPoolExecutor(16) as workers:
        zeros = set(workers.map(lambda n: time_zero(tmp_path, 16, clock=lambda: 100 + n / 1000), range(16)))

    assert len(zeros) == 1


def test_the_start_of_an_earlier_run_is_refused(tmp_path: Path) -> None:
    """The error names file and mend."""
    time_zero(tmp_path, 2, clock=lambda: 100.0)

    with pytest.raises(StartError, match=r"start: the start of a run 499 s ago; choose another folder"):
        time_zero(tmp_path, 2, clock=lambda: 600.0)
