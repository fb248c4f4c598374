"""When the next request starts, worked out by hand."""

import pytest

from exporters.canary.schedule import Schedule

SCHEDULE = Schedule(interval_seconds=10, timeout_seconds=8, backoff_max_seconds=40)


@pytest.mark.parametrize(
    ("failures", "wait"), [(0, 0), (1, 10), (2, 20), (3, 40), (4, 40), (5, 40), (10_000, 40)]
)
def test_waits_double_up_to_the_maximum(failures: int, wait: float) -> None:
    """10 s after one failure, 20 s after two, 40 s after three, and never more."""
    assert SCHEDULE.backoff_seconds(failures) == wait


def test_a_maximum_under_the_interval_is_the_interval() -> None:
    """A sick engine is never asked more often than a healthy one."""
    assert Schedule(10, 8, 5).backoff_seconds(3) == 10


def test_starts_are_an_interval_apart() -> None:
    """Begun at 100, answered at 100.2: the next starts at 110, and at 109 with full jitter."""
    assert SCHEDULE.next_start(100, 100.2, 0, random=0) == 110
    assert SCHEDULE.next_start(100, 100.2, 0, random=1) == pytest.approx(109)


def test_a_sick_target_waits_longer() -> None:
    """Begun at 100, timed out at 108, third failure in a row: the next starts at 140."""
    assert SCHEDULE.next_start(100, 108, 3, random=0) == 140


def test_the_next_never_starts_before_the_last_ended() -> None:
    """An answer that took 12 s of a 10 s interval moves the next start to its end."""
    assert SCHEDULE.next_start(100, 112, 0, random=0.5) == 112
