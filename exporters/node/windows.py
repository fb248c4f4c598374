"""Readings between scrapes -> min, mean, max, last since a scraper's last scrape; and settled memory."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from slo.node import Settled


@dataclass(frozen=True)
class Stats:
    """What a window held."""

    low: float
    mean: float
    high: float
    last: float

    def items(self) -> tuple[tuple[str, float], ...]:
        """(stat, value) in the spelling of slo.names.node.STATS."""
        return (("min", self.low), ("mean", self.mean), ("max", self.high), ("last", self.last))


class Window:
    """The readings of one quantity, oldest first, kept for at least `seconds`.

    One writer, any number of readers. Times and values are lists beside each other, so that a reader
    finds its start by bisection and takes the rest in one slice.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._readings: tuple[list[float], list[float]] = ([], [])

    def add(self, now: float, value: float) -> None:
        """Keep a reading taken at `now` (monotonic seconds)."""
        times, values = self._readings
        values.append(value)
        times.append(now)  # last: a reader counts by times
        if times[0] < now - 2 * self._seconds:
            first = bisect_right(times, now - self._seconds)
            self._readings = (times[first:], values[first:])

    def fresh(self, now: float) -> bool:
        """Whether anything was read within the window's length."""
        times, _ = self._readings
        return bool(times) and times[-1] >= now - self._seconds

    def values(self, since: float) -> list[float]:
        """The readings taken after `since`, oldest first."""
        times, values = self._readings
        count = len(times)
        return values[bisect_right(times, since, 0, count) : count]

    def stats(self, since: float) -> Stats | None:
        """What was read after `since`; None when nothing was."""
        values = self.values(since)
        if not values:
            return None
        return Stats(min(values), sum(values) / len(values), max(values), values[-1])


MOST_SCRAPERS = 64


class Scrapers:
    """
    When each scraper came last, so that two of them do not take each other's window away.

    A scraper names itself, so only the last MOST_SCRAPERS are remembered.
    """

    def __init__(self, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._last: dict[str, float] = {}

    def since(self, scraper: str, now: float) -> float:
        """The time from which `scraper` has not seen readings yet, and remember this visit."""
        horizon = now - self._longest
        last = self._last.get(scraper, horizon)
        self._last.pop(scraper, None)
        recent = [(who, at) for who, at in self._last.items() if at > horizon]
        self._last = {**dict(recent[-MOST_SCRAPERS + 1 :]), scraper: now}
        return max(last, horizon)


class SettledMemory:
    """Whether the last readings of memory in use lie close enough together to be compared."""

    def __init__(self, settled: Settled) -> None:
        self._spread = settled.spread_bytes
        self._recent: deque[float] = deque(maxlen=settled.samples)
        self.bytes: float | None = None

    def add(self, used: float) -> None:
        """Take the next reading, in bytes."""
        self._recent.append(used)
        if self.now:
            self.bytes = sum(self._recent) / len(self._recent)

    @property
    def now(self) -> bool:
        """True while the last `samples` readings span less than the spread."""
        full = len(self._recent) == self._recent.maxlen
        return full and _spread(self._recent) < self._spread


def _spread(values: Iterable[float]) -> float:
    kept = tuple(values)
    return max(kept) - min(kept)
