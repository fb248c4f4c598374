"""A range of values or times -> where to draw lines across, and what to write beside them."""

import math
import time

_TIME_STEPS = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    21600,
    43200,
    86400,
    172800,
    604800,
)


def linear(low: float, high: float, about: int) -> list[float]:
    """Round values from *low* to *high*, around *about* of them."""
    if high <= low:
        return [low]
    rough = (high - low) / max(about, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def logarithmic(low: float, high: float) -> list[float]:
    """Powers of ten from *low* to *high* (both over 0)."""
    return [10.0**p for p in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def seconds_ticks(high: float, about: int) -> list[float]:
    """Round values for an axis of seconds from 0: 15, 30, 60 rather than 20, 40, 60 where minutes are shown."""
    if high < 120:
        return linear(0, high, about)
    step = next((s for s in _TIME_STEPS if s >= high / max(about, 1)), _TIME_STEPS[-1])
    return [float(n * step) for n in range(int(high // step) + 1)]


def bytes_ticks(high: float, about: int) -> list[float]:
    """Values from 0 that are round in KiB, MiB, GiB, …."""
    size = 1024.0 ** max(math.floor(math.log(max(high, 1.0), 1024)), 0)
    return [size * v for v in linear(0, high / size, about)]


def times(start: float, end: float, about: int) -> list[tuple[float, str]]:
    """Round moments of local time with their text: clock times, with the date where a range is over a day."""
    rough = (end - start) / max(about, 1)
    step = next((s for s in _TIME_STEPS if s >= rough), _TIME_STEPS[-1])
    offset = time.localtime(start).tm_gmtoff
    first = math.ceil((start + offset) / step) * step - offset
    shape = "%H:%M:%S" if step < 60 else "%H:%M" if end - start <= 86_400 else "%d %b %H:%M"
    moments = range(int(first), int(end) + 1, step)
    return [(float(t), time.strftime(shape, time.localtime(t))) for t in moments]
