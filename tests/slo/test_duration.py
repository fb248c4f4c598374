"""Prometheus durations in both directions."""

import pytest

from slo.duration import format_seconds, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("5m", 300), ("1h30m", 5400), ("3d", 259200), ("0s", 0)]
)
def test_durations_are_read(text: str, seconds: int) -> None:
    """Each unit alone and together."""
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "5 m", "1.5h", "m5", "5m1h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """Bare numbers, fractions and wrong order are no Prometheus durations."""
    with pytest.raises(ValueError, match="is not a duration"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("seconds", "text"), [(300, "5m"), (3600, "1h"), (86400, "1d"), (90, "90s"), (0, "0s")]
)
def test_durations_are_written(seconds: int, text: str) -> None:
    """The largest unit that divides the number."""
    assert format_seconds(seconds) == text
