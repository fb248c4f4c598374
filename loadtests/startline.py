"""The workers of a run -> one time zero for all of them, so that their parts of the schedule interleave as planned."""

import contextlib
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

SETTLE_S = 0.2  # what a client needs to be ready to send
_GATHER_S = 1.0  # within which the workers of a host come, each after it measured its clock
_LATE_S = 30.0


class StartError(RuntimeError):
    """There is no common time zero; the message names the file and the mend."""


def time_zero(
    folder: Path, workers: int, *, on_the_minute: bool = False, clock: Callable[[], float] = time.time
) -> float:
    """Unix time at which the plan begins: shortly, or at the next full minute by *clock*.

    Of several *workers* that share *folder* the first one decides; one that comes too late sends late, and its
    records say so. Raises StartError where the folder holds the time zero of an earlier run.
    """
    begin_s = clock() + (SETTLE_S if workers == 1 else _GATHER_S)
    if on_the_minute:
        begin_s = math.ceil(begin_s / 60) * 60.0
    return begin_s if workers == 1 else _agreed(folder / "start", begin_s, clock())


def _agreed(path: Path, wish_s: float, now_s: float) -> float:
    with tempfile.NamedTemporaryFile("w", dir=path.parent) as mine:
        mine.write(repr(wish_s))
        mine.flush()
        with contextlib.suppress(FileExistsError):  # another worker was first: its wish is the time
            os.link(mine.name, path)  # at once and whole, so that nobody reads half a number
    begin_s = float(path.read_text(encoding="ascii"))
    if begin_s < now_s - _LATE_S:
        raise StartError(f"{path}: the start of a run {now_s - begin_s:.0f} s ago; choose another folder")
    return begin_s
