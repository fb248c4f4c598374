"""Many readers or one who closes NVML: handles must not be used while they become void."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Shared for readings, exclusive for closing and opening; a waiting closer goes first."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._closing = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Read; waits while somebody closes."""
        with self._condition:
            self._condition.wait_for(lambda: not self._closing)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Close and open; waits until no reader is inside and lets no new one in."""
        with self._condition:
            self._condition.wait_for(lambda: not self._closing)
            self._closing = True
            self._condition.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._condition:
                self._closing = False
                self._condition.notify_all()
