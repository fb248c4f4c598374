"""The power curve of the gate: how often builds of known slowness would pass, from measured noise."""

import math

import pytest

from loadtests.gatedemo import power_curve
from slo import spec


def test_without_noise_the_bound_decides() -> None:
    """Equal builds that measure equal: 4 % slower always passes a bound of 5 %, 6 % slower never."""
    curve = power_curve([0.0, 0.0, 0.0, 0.0], spec.load(), bound=0.05)

    assert {percent: curve[percent] for percent in (0, 4, 6, 12)} == {0: 1.0, 4: 1.0, 6: 0.0, 12: 0.0}


def test_noise_asks_for_pairs_until_a_good_build_passes() -> None:
    """
    Pairs that differ by ±3 % (a standard deviation of 3.1 %): four would pass a good build in half of all tries,
    the pairs that this noise asks for in nine of ten; at the bound it is one in twenty, give or take.
    """
    noise = [math.log(1.03), math.log(0.97)] * 10
    curve = power_curve(noise, spec.load(), bound=0.05)

    assert curve[0] > 0.9
    assert curve[5] == pytest.approx(0.05, abs=0.04)
    assert curve[10] < 0.001
    assert curve == dict(sorted(curve.items())) and list(curve) == list(range(13))


def test_without_a_pair_of_equal_builds_there_is_no_curve() -> None:
    """Every healthy try broke off before its first pair: that is to be told, not divided by."""
    assert power_curve([], spec.load(), bound=0.05) == {}
