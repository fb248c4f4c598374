"""Arrivals of a stream's chunks -> time to the first one, their count, the longest gap; one clock reading a chunk."""

from time import perf_counter_ns

_NS = 1e-9


class TokenClock:
    """
    Ticks once for each chunk that holds text; keeps four integers and no list.

    *began_ns*: when the stream was asked for, on `time.perf_counter_ns`.
    """

    __slots__ = ("_began", "_first", "_last", "_longest", "chunks")

    def __init__(self, began_ns: int | None = None) -> None:
        self._began = perf_counter_ns() if began_ns is None else began_ns
        self._first = self._last = self._longest = 0
        self.chunks = 0

    def tick(self) -> None:
        """A chunk came now."""
        now = perf_counter_ns()
        if self.chunks:
            gap = now - self._last
            if gap > self._longest:
                self._longest = gap
        else:
            self._first = now
        self._last = now
        self.chunks += 1

    @property
    def first_seconds(self) -> float | None:
        """From the begin to the first chunk; None while none came."""
        return (self._first - self._began) * _NS if self.chunks else None

    @property
    def longest_gap_seconds(self) -> float | None:
        """Between two chunks; None with fewer than two."""
        return self._longest * _NS if self.chunks > 1 else None

    def seconds_per_token(self, output_tokens: int | None) -> float | None:
        """First to last chunk over the tokens after the first; None where that says nothing."""
        if output_tokens is None or output_tokens < 2 or self.chunks < 2:
            return None
        return (self._last - self._first) * _NS / (output_tokens - 1)
