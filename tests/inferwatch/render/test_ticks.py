"""Axis marks are round and inside the range."""

import math
from itertools import pairwise

from inferwatch.render import ticks


def test_values_are_round() -> None:
    """0 to 47 with about five marks is every ten."""
    assert ticks.linear(0, 47, 5) == [0, 10, 20, 30, 40]


def test_a_range_of_nothing_has_one_mark() -> None:
    """A flat line at 3 is marked once."""
    assert ticks.linear(3, 3, 5) == [3]


def test_minutes_are_marked_as_minutes() -> None:
    """0 to 300 s: every minute, not every fifty seconds."""
    assert ticks.seconds_ticks(300, 5) == [0, 60, 120, 180, 240, 300]


def test_bytes_are_round_in_their_own_unit() -> None:
    """0 to 2.5 GiB is marked at whole and half GiB."""
    gib = 2.0**30
    assert ticks.bytes_ticks(2.5 * gib, 5) == [0, 0.5 * gib, gib, 1.5 * gib, 2 * gib, 2.5 * gib]


def test_a_logarithmic_axis_has_powers_of_ten() -> None:
    """0.02 to 30 lies between 0.01 and 100."""
    assert [math.log10(v) for v in ticks.logarithmic(0.02, 30)] == [-2, -1, 0, 1, 2]


def test_times_are_round_and_within() -> None:
    """An hour with about six marks is every ten minutes."""
    start = 1_795_975_200.0
    marks = [at for at, _ in ticks.times(start + 5, start + 3605, 6)]
    assert all(start + 5 <= at <= start + 3605 for at in marks)
    assert {int(b - a) for a, b in pairwise(marks)} == {600}
