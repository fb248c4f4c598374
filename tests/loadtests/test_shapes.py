"""Arrival times against areas worked out by hand, and process statistics within wide limits."""

import itertools
import random
from itertools import pairwise

import pytest

from loadtests import shapes


def _constant(segments: tuple[shapes.Segment, ...]) -> list[float]:
    return list(shapes.arrival_times(segments, random.Random(1), "constant"))


def test_constant_rate_is_evenly_spaced_with_the_right_count() -> None:
    """Ten a second for four seconds are forty requests, 100 ms apart."""
    times = _constant(shapes.flat(10, 4))

    assert len(times) == 40
    assert all(abs(later - earlier - 0.1) < 1e-9 for earlier, later in pairwise(times))


@pytest.mark.parametrize(("process", "burstiness"), [("poisson", 1.0), ("constant", 1.0), ("gamma", 0.25)])
@pytest.mark.parametrize("workers", [4, 16])
def test_workers_together_send_what_one_would(
    process: shapes.Process, burstiness: float, workers: int
) -> None:
    """Every fourth or sixteenth time each, over a ramp, a gap and a step: merged, the times of one worker, exactly."""

    def times(part: int, parts: int) -> list[float]:
        segments = (*shapes.ramp(1, 60, 10), *shapes.flat(0, 3), *shapes.flat(100, 5))
        rng = random.Random(11)
        return list(
            shapes.arrival_times(segments, rng, process, burstiness=burstiness, part=part, parts=parts)
        )

    parts = [times(part, workers) for part in range(workers)]
    counts = [len(part) for part in parts]

    assert sorted(itertools.chain(*parts)) == times(0, 1)
    assert max(counts) - min(counts) <= 1 < min(counts)


def test_ramp_has_the_area_of_its_triangle_and_is_denser_at_the_end() -> None:
    """0 to 20 a second over 10 s are 100 requests; half of them come in the last 2.93 s (10 - 10/√2)."""
    times = _constant(shapes.ramp(0, 20, 10))

    assert len(times) == 100
    assert sum(time > 10 / 2**0.5 for time in times) == 50


def test_falling_ramp_mirrors_the_rising_one() -> None:
    """20 to 0 a second: half of the requests in the first 2.93 s, all within the 10 s."""
    times = _constant(shapes.ramp(20, 0, 10))

    assert sum(time < 10 - 10 / 2**0.5 for time in times) == 50
    assert max(times) <= 10


def test_steps_and_a_silent_stage() -> None:
    """Each stage has its own count; a stage at level 0 has none."""
    times = _constant(shapes.steps([(2, 5), (3, 0), (1, 20)]))

    assert [
        sum(t < 2 for t in times),
        sum(2 <= t < 5 for t in times),
        sum(t >= 5 for t in times),
    ] == [10, 0, 20]


def test_pulses_on_the_minute() -> None:
    """50 a second for 2 s at each full minute, 1 a second else: 98 more than a flat 1 a second in each minute."""
    times = _constant(shapes.pulses(1, 50, 2, 150))

    assert len(times) == 150 + 3 * 98
    assert [sum(60 * k <= t < 60 * k + 2 for t in times) for k in range(3)] == [100, 100, 100]


def test_spike_stands_where_it_was_put() -> None:
    """1 a second, 30 a second from second 4 to 6."""
    times = _constant(shapes.spike(1, 30, 4, 2, 10))

    assert [
        sum(t < 4 for t in times),
        sum(4 <= t < 6 for t in times),
        sum(t >= 6 for t in times),
    ] == [4, 60, 4]


@pytest.mark.parametrize(
    ("process", "burstiness", "dispersion"), [("poisson", 1.0, 1.0), ("gamma", 0.25, 4.0)]
)
def test_random_processes_have_their_mean_and_dispersion(
    process: shapes.Process, burstiness: float, dispersion: float
) -> None:
    """100 a second: counts in 1 s windows have mean 100, and variance/mean 1 for Poisson, 1/shape for gamma."""
    times = shapes.arrival_times(shapes.flat(100, 400), random.Random(7), process, burstiness=burstiness)
    counts = [0] * 400
    for time in times:
        counts[int(time)] += 1
    mean = sum(counts) / 400
    variance = sum((count - mean) ** 2 for count in counts) / 399

    assert 95 < mean < 105
    assert 0.7 * dispersion < variance / mean < 1.4 * dispersion


def test_same_seed_same_times() -> None:
    """Runs are paired by their seed."""
    once, twice = (list(shapes.arrival_times(shapes.flat(9, 9), random.Random(3))) for _ in range(2))

    assert once == twice


def test_level_at() -> None:
    """The level is read off the segments, and there is none after the end."""
    segments = (*shapes.ramp(0, 10, 10), *shapes.flat(4, 5))

    levels = [shapes.level_at(segments, at) for at in (0, 5, 10, 14.9, 15)]

    assert levels == [0, 5, 4, 4, None]


@pytest.mark.parametrize("make", [lambda: shapes.spike(1, 2, 8, 4, 10), lambda: shapes.pulses(1, 2, 60, 120)])
def test_impossible_shapes_are_refused(make: object) -> None:
    """A spike beyond the end, or a pulse as long as its period, is an error."""
    assert callable(make)
    with pytest.raises(ValueError, match=r"not lie inside|not possible"):
        make()
