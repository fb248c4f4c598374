"""A stream of vectors -> an even sample of the sliding window, in bounded memory.

Every vector draws a random number; the sample is the `size` lowest of those that are still in the window.
That is a uniform sample without replacement of all that came within it. A vector is dropped as soon as
`size` newer ones drew lower, since it can never be in a sample again, so that about size × (1 + ln(n/size))
of n are held and never over (slices + 1) × size. Nothing older than the window is held.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from exporters.drift.vectors import Floats


@dataclass
class _Slice:
    """Vectors of one part of the window; *number* counts parts since the clock's zero."""

    number: int
    draws: np.ndarray
    vectors: Floats
    seen: int = 0
    waiting: list[tuple[np.ndarray, Floats]] = field(default_factory=list)
    waiting_rows: int = 0

    def settle(self, size: int) -> None:
        """Take in what waits, and keep the *size* lowest."""
        if self.waiting:
            draws = np.concatenate([self.draws, *(one for one, _ in self.waiting)])
            keep = _lowest(draws, size)
            self.draws = draws[keep]
            self.vectors = np.concatenate([self.vectors, *(one for _, one in self.waiting)])[keep]
            self.waiting, self.waiting_rows = [], 0


class Reservoir:
    """
    One stream's window.

    *dimension* is fixed; times are seconds of any one clock that does not go back. The window ends with the
    present slice, so that what is held is between window − window/slices and window old.
    """

    def __init__(self, dimension: int, size: int, window_seconds: float, slices: int, seed: int) -> None:
        self.dimension = dimension
        self._size = size
        self._slice_seconds = window_seconds / slices
        self._slices = slices
        self._random = np.random.default_rng(seed)
        self._parts: deque[_Slice] = deque()

    def add(self, vectors: Floats, now: float) -> None:
        """Take vectors, shape (n, dimension), that came at *now*."""
        self.expire(now)
        number = int(now // self._slice_seconds)
        if not self._parts or self._parts[-1].number < number:
            self._parts.append(_Slice(number, np.empty(0), np.empty((0, self.dimension), np.float32)))
            self._prune()
        part = self._parts[-1]
        part.seen += len(vectors)
        draws = self._random.random(len(vectors))
        if len(part.draws) >= self._size:
            low = draws < part.draws.max()
            draws, vectors = draws[low], vectors[low]
        if len(draws):
            part.waiting.append((draws, vectors))
            part.waiting_rows += len(draws)
            if part.waiting_rows >= self._size:  # rarely, so that an answer is not held up by copying
                part.settle(self._size)

    def expire(self, now: float) -> None:
        """Drop what has left the window at *now*."""
        oldest = int(now // self._slice_seconds) - self._slices + 1
        while self._parts and self._parts[0].number < oldest:
            self._parts.popleft()

    def sample(self, now: float) -> Floats:
        """The present sample, shape (≤ size, dimension); the same contents give the same sample."""
        self.expire(now)
        if not self._parts:
            return np.empty((0, self.dimension), np.float32)
        self._parts[-1].settle(self._size)
        draws = np.concatenate([part.draws for part in self._parts])
        vectors = np.concatenate([part.vectors for part in self._parts])
        keep: Floats = vectors[_lowest(draws, self._size)]
        return keep

    def seen(self, now: float) -> int:
        """Vectors that came within the window."""
        self.expire(now)
        return sum(part.seen for part in self._parts)

    @property
    def held_bytes(self) -> int:
        """Memory of the vectors that are held."""
        return sum(
            part.vectors.nbytes + part.waiting_rows * self.dimension * part.vectors.itemsize
            for part in self._parts
        )

    def _prune(self) -> None:
        """Drop from older parts what `size` newer vectors have already beaten."""
        newer = np.empty(0)
        for part in reversed(self._parts):
            part.settle(self._size)
            if len(newer) >= self._size:
                keep = part.draws < newer.max()
                part.draws, part.vectors = part.draws[keep], part.vectors[keep]
            newer = np.concatenate([newer, part.draws])
            newer = newer[_lowest(newer, self._size)]


def _lowest(draws: np.ndarray, size: int) -> np.ndarray:
    """Indices of the *size* lowest draws, in their order of coming."""
    if len(draws) <= size:
        return np.arange(len(draws))
    return np.sort(np.argpartition(draws, size - 1)[:size])
