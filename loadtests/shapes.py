"""Level over time (requests per second, or users) -> arrival times, or how many users there are now.

Every shape is a list of straight segments, so a ramp, a step, a pulse and a soak differ only in how the list
was made. Arrival times come from running a renewal process with mean 1 through the inverse of the area under
the level; that is exact for a Poisson process with a changing rate, not an approximation by small steps.
"""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Process = Literal["poisson", "constant", "gamma"]
MOST_PULSES = 100_000
"""On every minute of two months; each is held in memory."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Level going in a straight line from *start* to *end* during *duration_s* seconds."""

    duration_s: float
    start: float
    end: float

    @property
    def area(self) -> float:
        """Expected number of arrivals in the segment."""
        return self.duration_s * (self.start + self.end) / 2

    def time_of_area(self, area: float) -> float:
        """Seconds into the segment at which *area* has gone by; 0 <= area <= self.area."""
        slope = (self.end - self.start) / self.duration_s
        if abs(slope) < 1e-12:
            return area / self.start
        root = math.sqrt(max(self.start**2 + 2 * slope * area, 0.0))
        return min(2 * area / (self.start + root), self.duration_s) if self.start + root else 0.0


def flat(level: float, duration_s: float) -> tuple[Segment, ...]:
    """One level throughout (a soak is a long one)."""
    return (Segment(duration_s, level, level),)


def steps(stages: Sequence[tuple[float, float]]) -> tuple[Segment, ...]:
    """(duration in seconds, level) stages, each flat."""
    return tuple(Segment(duration, level, level) for duration, level in stages)


def ramp(start: float, end: float, duration_s: float) -> tuple[Segment, ...]:
    """A straight rise or fall."""
    return (Segment(duration_s, start, end),)


def spike(base: float, peak: float, at_s: float, width_s: float, duration_s: float) -> tuple[Segment, ...]:
    """*base*, then *peak* for *width_s* from *at_s*, then *base* to the end."""
    if not 0 < at_s < at_s + width_s < duration_s:
        raise ValueError(f"spike: {width_s:g} s from {at_s:g} s does not lie inside {duration_s:g} s")
    return steps([(at_s, base), (width_s, peak), (duration_s - at_s - width_s, base)])


def pulses(
    base: float,
    peak: float,
    width_s: float,
    duration_s: float,
    *,
    period_s: float = 60.0,
    first_s: float = 0.0,
) -> tuple[Segment, ...]:
    """*peak* for *width_s* at *first_s* and each *period_s* after, *base* in between (jobs on the minute)."""
    if not 0 < width_s < period_s or not 0 <= first_s <= period_s:
        raise ValueError(
            f"pulses: {width_s:g} s wide every {period_s:g} s from {first_s:g} s is not possible"
        )
    if duration_s / period_s > MOST_PULSES:
        raise ValueError(
            f"pulses: {duration_s:g} s hold more than {MOST_PULSES} of them, every {period_s:g} s; make it shorter"
        )
    edges: list[tuple[float, float]] = [(first_s, base)] if first_s else []
    at = first_s
    while at < duration_s:
        edges.append((min(width_s, duration_s - at), peak))
        rest = min(period_s - width_s, duration_s - at - width_s)
        if rest > 0:
            edges.append((rest, base))
        at += period_s
    return steps(edges)


def level_at(segments: Sequence[Segment], at_s: float) -> float | None:
    """The level *at_s* seconds after the start; None when the shape is over."""
    for segment in segments:
        if at_s < segment.duration_s:
            return segment.start + (segment.end - segment.start) * at_s / segment.duration_s
        at_s -= segment.duration_s
    return None


def arrival_times(
    segments: Sequence[Segment],
    rng: random.Random,
    process: Process = "poisson",
    *,
    burstiness: float = 1.0,
    part: int = 0,
    parts: int = 1,
) -> Iterator[float]:
    """Seconds from the start at which requests are due, ascending, until the shape is over.

    poisson: independent users. constant: even spacing. gamma: renewal with gamma-distributed intervals of shape
    *burstiness* (below 1 comes in bursts, 1 is Poisson, above 1 is more even than Poisson; the squared
    coefficient of variation is 1/burstiness). Only each *parts*-th time, from number *part* (from 0), is given: the
    parts of an equal *rng* together are the whole, whereas a process thinned to a part of its rate is another one.
    """
    dues = itertools.islice(_unit_process(rng, process, burstiness), part, None, parts)
    due = next(dues)
    begun_area = begun_s = 0.0
    for segment in segments:
        end_area = begun_area + segment.area
        while due < end_area:
            yield begun_s + segment.time_of_area(due - begun_area)
            due = next(dues)
        begun_area = end_area
        begun_s += segment.duration_s


def _unit_process(rng: random.Random, process: Process, burstiness: float) -> Iterator[float]:
    """Endless arrivals, one a unit of area; of C parts, because each worker draws those of all workers."""
    if process == "constant":
        return itertools.count(0.5)
    if process == "poisson":
        return itertools.accumulate(map(rng.expovariate, itertools.repeat(1.0)))
    if burstiness <= 0:
        raise ValueError(f"burstiness: {burstiness:g} is not above 0")
    shape, scale = itertools.repeat(burstiness), itertools.repeat(1.0 / burstiness)
    return itertools.accumulate(map(rng.gammavariate, shape, scale))
