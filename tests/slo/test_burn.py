"""Burn-rate arithmetic against the SRE workbook's table and hand calculation."""

import pytest

from slo.burn import error_ratio_threshold, factor, reachable, seconds_to_cross, window_lengths
from slo.objectives import BurnWindow
from slo.spec import load


def window(long: str, short: str, percent: float) -> BurnWindow:
    return BurnWindow.model_validate(
        {"severity": "page", "long": long, "short": short, "budget_percent": percent}
    )


@pytest.mark.parametrize(
    ("long", "short", "percent", "days", "expected"),
    [
        ("1h", "5m", 2, 30, 14.4),
        ("6h", "30m", 5, 30, 6),
        ("1d", "2h", 10, 30, 3),
        ("3d", "6h", 10, 30, 1),
        ("1h", "5m", 2, 28, 13.44),
        ("6h", "30m", 5, 28, 5.6),
    ],
)
def test_factor_is_the_workbook_s(long: str, short: str, percent: float, days: int, expected: float) -> None:
    """The factors of the workbook (30 d) and of Sloth (28 d) come out of share, period and window."""
    assert factor(window(long, short, percent), days) == pytest.approx(expected)


def test_threshold_and_reach() -> None:
    """99.95 %: 14.4 × 0.0005 = 0.0072; a 95 % objective is out of reach at 14.4 × 0.05 = 0.72 only above 72 %."""
    fast = window("1h", "5m", 2)

    assert error_ratio_threshold(fast, 30, 0.9995) == pytest.approx(0.0072)
    assert reachable(fast, 30, 0.95)
    assert not reachable(fast, 30, 0.93)


def test_delay_of_the_fast_window() -> None:
    """99.9 %, all requests fail: 0.0144 of an hour is 51.84 s; at 1 % failing it never crosses."""
    fast = window("1h", "5m", 2)

    assert seconds_to_cross(fast, 30, 0.999, 1.0) == pytest.approx(51.84)
    assert seconds_to_cross(fast, 30, 0.999, 0.01) is None


def test_window_lengths_of_the_shipped_spec() -> None:
    """5m, 30m, 1h, 2h, 6h, 1d, 3d, each once."""
    assert window_lengths(load().budget) == [300, 1800, 3600, 7200, 21600, 86400, 259200]
