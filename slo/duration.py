"""Prometheus durations ("5m", "1h30m") to whole seconds and back."""

import re

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_SHAPE = re.compile(r"^(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$")


def parse_seconds(text: str) -> int:
    """Return the seconds of a Prometheus duration in d, h, m, s.

    Raises ValueError when *text* is no such duration.
    """
    match = _SHAPE.match(text)
    if not match or not text:
        raise ValueError(f"{text!r} is not a duration; write it like 30s, 5m, 1h30m or 3d")
    return sum(int(n) * unit for n, unit in zip(match.groups(), _UNITS.values(), strict=True) if n)


def format_seconds(seconds: int) -> str:
    """Return the duration as one number with the largest unit that divides it (3600 -> "1h")."""
    if seconds == 0:
        return "0s"
    unit, size = next((u, s) for u, s in _UNITS.items() if seconds % s == 0)
    return f"{seconds // size}{unit}"
