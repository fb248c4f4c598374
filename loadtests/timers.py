"""An instant of the monotonic clock -> the greenlet wakes then, not up to a millisecond later.

libev hands epoll whole milliseconds, rounded up, so gevent.sleep is 0 to 1 ms late by construction; a Linux
timer file descriptor wakes the loop at the instant itself. Elsewhere gevent.sleep is used.
"""

import ctypes
import os
import sys
from typing import Any

import gevent

from loadtests.transport import now_ns

_CLOCK_MONOTONIC = 1
_TFD_FLAGS = 0o2004000  # close-on-exec, non-blocking
_ABSOLUTE = 1
_NEAR_NS = 20_000
_BEHIND_NS = 5_000_000


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class PreciseTimer:
    """Sleep until an instant; one greenlet at a time."""

    def __init__(self) -> None:
        self._libc: Any = None
        self._watcher: Any = None
        self._fd = -1
        if sys.platform == "linux":
            libc = ctypes.CDLL(None, use_errno=True)
            fd = libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_FLAGS)
            if fd >= 0:
                self._libc, self._fd = libc, fd
                loop = gevent.get_hub().loop
                self._watcher = loop.io(fd, 1, priority=loop.MAXPRI)  # before all answers that came by then
                self._spec = _Itimerspec()

    def sleep_until(self, due_ns: int) -> None:
        """
        Return at monotonic time *due_ns*, or at once when that is past.

        Who is behind by milliseconds lets the others run first: answers must be read while a schedule is caught up with.
        """
        left = due_ns - now_ns()
        if left < _NEAR_NS:
            if left < -_BEHIND_NS:
                gevent.sleep(0)
            return
        if self._libc is None:
            gevent.sleep(left / 1e9)
            return
        value = self._spec.value
        value.seconds, value.nanoseconds = divmod(due_ns, 1_000_000_000)
        if self._libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(self._spec), None) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        gevent.get_hub().wait(self._watcher)
        os.read(self._fd, 8)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            self._watcher.close()
            os.close(self._fd)
            self._fd = -1


def start_now(greenlet: gevent.Greenlet) -> None:
    """Run a new greenlet until it first waits, before anything else that is ready; then the caller goes on."""
    back = gevent.get_hub().loop.run_callback(gevent.getcurrent().switch)
    try:
        greenlet.switch()
    finally:
        back.stop()  # a caller that was killed here must not be woken from whatever it waits for next
