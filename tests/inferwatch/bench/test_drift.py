"""The benchmark's arithmetic: thresholds, power, delay, and what counts as a miss."""

import numpy as np
import pytest

from inferwatch.bench import drift, drift_shifts


def test_threshold_power_and_delay_by_hand() -> None:
    """Healthy 1 to 20: at 5 % the threshold is the twentieth; two of four windows are over it."""
    scores = {
        "healthy": [float(n) for n in range(1, 21)],
        "shift 0.1": [19.0, 20.0, 20.5, 21.0],
        "shift entered 0.02": [1.0, 2.0, 3.0],
        "shift entered 0.05": [1.0, 2.0, 3.0],
        "shift entered 0.1": [19.0, 21.0, 22.0],
        "shift entered 0.2": [30.0, 30.0, 30.0],
    }

    assert drift.threshold(scores) == 20.0
    assert drift._power(scores) == {"shift 0.1": 0.5}
    assert drift._delays(scores, window=500) == {"shift": 50}


def test_a_peer_that_sees_more_is_a_miss_where_chance_cannot_be_it() -> None:
    """Only it sees five windows: chance has 1/32. Only it sees four: 1/16, which is over 5 %. The other way: nothing."""
    healthy = {"healthy": [0.0] * 20}
    sides = {
        "inferwatch": healthy | {"a 1": [0.0] * 5 + [1.0], "b 1": [0.0] * 4 + [1.0] * 2, "c 1": [1.0] * 6},
        "peer": healthy | {"a 1": [1.0] * 6, "b 1": [1.0] * 6, "c 1": [0.0] * 6},
    }

    assert drift._behind(sides) == (
        ["a 1: power 0.17, peer has 1"],
        ["b 1: power 0.33, peer has 1"],
    )


def test_a_peer_that_sees_it_earlier_is_a_miss() -> None:
    """Later, or never, is listed with the peer's name; equal is not."""
    delay = {"inferwatch": {"a": 100, "b": None}, "peer": {"a": 100, "b": 50}}

    assert drift._later(delay) == ["b: seen after None vectors, peer after 50"]


def test_slower_by_less_than_ten_times_is_a_miss() -> None:
    """The goal is a tenth of every peer's time."""
    found = {"t": {"times_slower_than_ours": {"quick": 3.0, "slow": 12.0}}}

    assert drift._too_slow(found) == ["t: quick takes 3 times our time, not ten"]


@pytest.mark.parametrize("degrees", [5, 45])
def test_a_turn_keeps_lengths_and_angles(degrees: float) -> None:
    """A rotation changes neither the length of a vector nor the angle between two."""
    points = np.random.default_rng(1).standard_normal((5, 40))
    turned = drift_shifts.turn(5)(points, degrees, np.random.default_rng(0))

    assert turned @ turned.T == pytest.approx(points @ points.T)
    assert not np.allclose(turned, points)


def test_mixing_and_flooding_change_the_stated_share() -> None:
    """A tenth of 100 rows comes from elsewhere, or is a copy of three of the window's own."""
    window, random = np.arange(100.0)[:, None].repeat(4, axis=1), np.random.default_rng(1)
    mixed = drift_shifts.mixed_with(np.full((50, 4), -1.0))(window.copy(), 0.1, random)
    flooded = drift_shifts.flood(window.copy(), 0.1, random)

    assert int((mixed[:, 0] == -1).sum()) == 10
    assert set(flooded[:10, 0]) <= {97.0, 98.0, 99.0}
    assert flooded[10:].tolist() == window[10:].tolist()


def test_the_same_windows_for_everyone() -> None:
    """Drawing twice gives the same rows."""
    one, two = (drift_shifts.synthetic(2, 1, size=50, dimension=16)[0] for _ in range(2))

    assert np.array_equal(one.healthy, two.healthy)
    assert all(np.array_equal(one.changed[name], two.changed[name]) for name in one.changed)
