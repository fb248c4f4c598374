"""When a plan begins: shortly, or at a full minute. One process decides; the workers of a run hear it from their master."""

import math
import time
from collections.abc import Callable

from loadtests.transport import now_ns

SETTLE_S = 0.2  # what a client needs to be ready to send
_GATHER_S = 1.0  # within which workers come, each after it measured its clock


def time_zero(*, alone: bool, on_the_minute: bool = False, clock: Callable[[], float] = time.time) -> float:
    """Unix time at which the plan begins, for one process *alone* or for workers that are still to come.

    Shortly, or at the next full minute by *clock*. A worker that comes too late sends late, and its records say so.
    """
    begin_s = clock() + (SETTLE_S if alone else _GATHER_S)
    return math.ceil(begin_s / 60) * 60.0 if on_the_minute else begin_s


def monotonic(unix_s: float) -> float:
    """The same moment on this host's monotonic clock, which nobody sets while a run goes on."""
    return now_ns() / 1e9 + unix_s - time.time()
