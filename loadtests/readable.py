"""A descriptor -> the greenlet wakes when there is something to read; the loop keeps watching between two reads."""

from typing import Any

import gevent

_READ = 1


class Readable:
    """
    Wait for one descriptor; one greenlet at a time.

    gevent's own wait begins and ends to watch at every read, which is a system call and half of what the loop costs
    where each read is one small chunk.
    """

    __slots__ = ("_hub", "_waiting", "_watcher")

    def __init__(self, fileno: int) -> None:
        self._hub: Any = gevent.get_hub()
        self._watcher: Any = self._hub.loop.io(fileno, _READ)
        self._waiting: Any = None

    def wait(self) -> None:
        """Return when a read would not block; what is thrown into the greenlet meanwhile is raised."""
        if not self._watcher.active:
            self._watcher.start(self._ready)
        self._waiting = gevent.getcurrent()
        try:
            self._hub.switch()
        finally:
            self._waiting = None

    def close(self) -> None:
        """Watch no more; before the descriptor is closed."""
        self._watcher.close()

    def _ready(self) -> None:
        if self._waiting is None:
            self._watcher.stop()  # nobody reads now, and the loop would come here again and again
        else:
            self._waiting.switch()
