"""Numbers with units are shown as a reader expects them."""

import math

import pytest

from inferwatch.render.units import show


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.25, "s", "250 ms"),
        (0.0000025, "s", "2.5 µs"),
        (1.5, "s", "1.5 s"),
        (90, "s", "90 s"),
        (120, "s", "2 min"),
        (5400, "s", "1.5 h"),
        (0.97, "percentunit", "97 %"),
        (0.1234, "percentunit", "12.3 %"),
        (0, "percentunit", "0 %"),
        (1234, "short", "1.23 k"),
        (12.5, "reqps", "12.5 req/s"),
        (1536, "bytes", "1.5 KiB"),
        (0, "bytes", "0 B"),
        (4096, "none", "4096"),
        (math.inf, "s", "+Inf"),
    ],
)
def test_a_value_is_shown_in_its_unit(value: float, unit: str, shown: str) -> None:
    """Three significant digits, the unit that suits the size; a ratio of 0.97 is 97 %, not 0.97 %."""
    assert show(value, unit) == shown


def test_unknown_is_not_a_number() -> None:
    """NaN never looks like a value."""
    assert show(math.nan, "s") == "n/a"


def test_decimals_are_kept() -> None:
    """What the panel asks for is what is shown."""
    assert show(0.5, "percentunit", 1) == "50.0 %"
