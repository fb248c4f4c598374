"""Time zero: shortly, or on the minute."""

import time

import pytest

from loadtests.startline import monotonic, time_zero

MINUTE = 1_800_000_060.0  # divides by 60


def test_a_plan_begins_shortly() -> None:
    """Within a second of now; a little later where workers are still to come."""
    assert 100 <= time_zero(alone=True, clock=lambda: 100.0) < 101
    assert 101 <= time_zero(alone=False, clock=lambda: 100.0) <= 102


@pytest.mark.parametrize(("now", "begins"), [(-42.7, 0), (-5, 0), (-0.05, 60), (17.3, 60)])
@pytest.mark.parametrize("alone", [True, False])
def test_on_the_minute(now: float, begins: float, alone: bool) -> None:
    """The next full minute of the wall clock; one that is too near to be ready for is let go."""
    assert time_zero(alone=alone, on_the_minute=True, clock=lambda: MINUTE + now) == MINUTE + begins


def test_the_same_moment_on_both_clocks() -> None:
    """Ten seconds from now by the wall are ten from now by the monotonic clock."""
    assert monotonic(time.time() + 10) == pytest.approx(time.monotonic() + 10, abs=0.05)
