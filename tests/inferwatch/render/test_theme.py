"""Colours: scales end where they should, thresholds pick the right step, text stays readable."""

import pytest

from inferwatch.render import theme


def test_a_scale_runs_from_its_first_colour_to_its_last() -> None:
    """Viridis begins dark purple and ends yellow; beyond the ends it stays there."""
    assert theme.scale("Viridis", 0) == "#440154"
    assert theme.scale("Viridis", 1) == "#fde725"
    assert theme.scale("Viridis", 7) == "#fde725"


def test_red_to_green_can_run_backwards() -> None:
    """Grafana's GrYlRd is RdYlGr from its other end."""
    assert theme.scale("continuous-GrYlRd", 0) == theme.scale("continuous-RdYlGr", 1)


@pytest.mark.parametrize(("value", "colour"), [(0.1, "#111111"), (0.5, "#222222"), (0.8, "#333333")])
def test_a_threshold_begins_at_its_value(value: float, colour: str) -> None:
    """0.5 itself belongs to the step that starts at 0.5."""
    steps = [
        {"value": None, "color": "#111111"},
        {"value": 0.5, "color": "#222222"},
        {"value": 0.8, "color": "#333333"},
    ]
    assert theme.threshold_colour(steps, value) == colour


def test_text_is_dark_on_light_and_light_on_dark() -> None:
    """Yellow cells take black text, purple ones white."""
    assert theme.readable_on("#fde725") == "#101010"
    assert theme.readable_on("#440154") == "#ffffff"


def test_series_colours_stay_apart_without_red_and_green() -> None:
    """For eyes that see no difference of red and green, any two of the first six differ in light or blue."""

    def seen(colour: str) -> tuple[float, float]:
        r, g, b = theme.rgb(colour)
        return 0.299 * r + 0.587 * g + 0.114 * b, float(b)

    first = [seen(c) for c in theme.SERIES[:6]]
    closest = min(abs(a[0] - b[0]) + abs(a[1] - b[1]) for i, a in enumerate(first) for b in first[i + 1 :])
    assert closest > 25


@pytest.mark.parametrize(
    ("written", "drawn"),
    [
        ("#D55E00", "#D55E00"), ("#D55E00aa", "#D55E00"), ("dark-red", "#f2495c"), ("transparent", "transparent"),
        ("rgba(0, 211, 255, 1)", "#00d3ff"), ("what", "text"),
    ],
)  # fmt: skip
def test_colours_are_read_as_dashboards_write_them(written: str, drawn: str) -> None:
    """Names, shades, rgba() and hex with an alpha; an unknown one is the text's."""
    assert theme.settled(written) == drawn
