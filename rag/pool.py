"""A bounded number of slots -> who gets one, how long it waited, and who is turned away; all of it as metrics."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter

from rag.metrics import Metrics


class PoolStarved(RuntimeError):
    """No slot within the patience of the pool."""

    error_type = "pool_starved"


class Pool:
    """First come, first served. Its size can be changed while it is used; slots in use are never taken away."""

    def __init__(self, name: str, size: int, wait_seconds: float, metrics: Metrics) -> None:
        self.name = name
        self._size, self._active, self._patience = size, 0, wait_seconds
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._wait = metrics.pool_wait.labels(name)
        self._resets = metrics.pool_resets.labels(name)
        self._gauges = {state: metrics.pool_connections.labels(name, state) for state in ("active", "idle")}
        self._size_gauge = metrics.pool_size.labels(name)
        self._show()

    @property
    def size(self) -> int:
        """Slots there are now."""
        return self._size

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Hold a slot; gives the seconds waited for it. Raises PoolStarved."""
        began = perf_counter()
        try:
            await self._acquire()
        finally:
            waited = perf_counter() - began
            self._wait.observe(waited)
        try:
            yield waited
        finally:
            self._active -= 1
            self._wake()

    def resize(self, size: int) -> None:
        """Have *size* slots from now on."""
        if size < 1:
            raise ValueError(f"pool {self.name!r}: size {size}; 1 is the least")
        self._size = size
        self._wake()

    def reset_seen(self) -> None:
        """A kept-alive connection was found dead."""
        self._resets.inc()

    async def _acquire(self) -> None:
        if self._active < self._size and not self._waiting:
            self._active += 1
            self._show()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait_for(turn, self._patience)
        except TimeoutError:
            self._leave(turn)
            raise PoolStarved(
                f"pool {self.name!r}: no slot of {self._size} in {self._patience:g} s"
            ) from None
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot came as the caller went
                self._active -= 1
                self._wake()
            else:
                self._leave(turn)
            raise

    def _leave(self, turn: "asyncio.Future[None]") -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)

    def _wake(self) -> None:
        while self._waiting and self._active < self._size:
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)
        self._show()

    def _show(self) -> None:
        self._gauges["active"].set(self._active)
        self._gauges["idle"].set(max(0, self._size - self._active))
        self._size_gauge.set(self._size)
