"""A short text such as "ramp:1:20:60" -> segments of level over time, as the command line takes them."""

import math
from collections.abc import Callable

from loadtests import shapes
from loadtests.shapes import Segment

Segments = tuple[Segment, ...]
_NUMBERS: dict[str, tuple[int, Callable[..., Segments], str]] = {
    "flat": (2, lambda level, seconds: shapes.flat(level, seconds), "flat:LEVEL:SECONDS"),
    "soak": (2, lambda level, seconds: shapes.flat(level, seconds), "soak:LEVEL:SECONDS"),
    "ramp": (3, shapes.ramp, "ramp:FROM:TO:SECONDS"),
    "spike": (5, shapes.spike, "spike:BASE:PEAK:AT:WIDTH:SECONDS"),
    "pulses": (4, shapes.pulses, "pulses:BASE:PEAK:WIDTH:SECONDS (from the next full minute, at each)"),
}
FORMS = ", ".join([*(form for _, _, form in _NUMBERS.values()), "steps:LEVEL@SECONDS,LEVEL@SECONDS,…"])


def parse_shape(text: str) -> Segments:
    """Read one of `FORMS`; levels are requests per second (or clients), times seconds. Raises ValueError."""
    kind, _, rest = text.partition(":")
    try:
        if kind == "steps":
            stages = [stage.split("@") for stage in rest.split(",")]
            return shapes.steps([(_finite(seconds), _finite(level)) for level, seconds in stages])
        count, make, form = _NUMBERS[kind]
        numbers = [_finite(part) for part in rest.split(":")]
        if len(numbers) != count:
            raise ValueError(f"{len(numbers)} numbers, it takes {form}")
        return make(*numbers)
    except KeyError:
        raise ValueError(f"shape {text!r}: unknown; write one of {FORMS}") from None
    except ValueError as error:
        raise ValueError(f"shape {text!r}: {error}; write one of {FORMS}") from None


def by_the_clock(text: str) -> bool:
    """Whether the shape is one of full minutes, so that it has to begin at one: pulses."""
    return text.partition(":")[0] == "pulses"


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text.strip()} is no length of time and no level")
    return value
