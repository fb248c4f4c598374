"""Time series: gaps stay gaps, stacks add up, limits are drawn where they are."""

import math
from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.canvas import Canvas, Line, Rect, Text, text_width
from inferwatch.render.fetch import Answer, Event
from inferwatch.render.fields import tracks
from inferwatch.render.lines import draw
from inferwatch.render.variables import window

VIEW = window(0, 100, 5)


def drawn(panel: Any, *series: Series, events: list[Event] | None = None) -> Canvas:
    """The panel with *series* on a canvas of 600 × 300."""
    canvas = Canvas(600, 300)
    found = tracks(panel, [Answer("A", "{{a}}", "time_series", series)])
    draw(canvas, panel, found, VIEW, events or [])
    return canvas


def curves(canvas: Canvas) -> list[Line]:
    """Lines of data; grid lines and limits have none or another hint."""
    return [s for s in canvas.shapes if isinstance(s, Line) and s.hint and not s.dashed]


def test_a_gap_is_not_bridged(panel: Any) -> None:
    """Samples at 0, 5, then 50, 55: two lines, nothing between."""
    canvas = drawn(panel("timeseries", ["x"]), Series({"a": "1"}, ((0, 1), (5, 1), (50, 2), (55, 2))))
    assert [len(line.points) for line in curves(canvas)] == [2, 2]


def test_nan_is_a_gap(panel: Any) -> None:
    """0/0 is no zero."""
    series = Series({"a": "1"}, ((0, 1), (5, 1), (10, math.nan), (15, 1), (20, 1)))
    assert [len(line.points) for line in curves(drawn(panel("timeseries", ["x"]), series))] == [2, 2]


def test_a_lone_sample_is_a_dot(panel: Any) -> None:
    """It would vanish as a line."""
    canvas = drawn(panel("timeseries", ["x"]), Series({"a": "1"}, ((50, 2),)))
    assert not curves(canvas)
    assert any(isinstance(s, Rect) and s.hint == "1" and s.radius == 2 for s in canvas.shapes)


def test_a_stack_adds_up(panel: Any) -> None:
    """1 and 2 stacked: the upper line is three times as high over the floor as the lower."""
    one = panel("timeseries", ["x"], defaults={"min": 0, "custom": {"stacking": {"mode": "normal"}}})
    canvas = drawn(one, Series({"a": "1"}, ((0, 1), (5, 1))), Series({"a": "2"}, ((0, 2), (5, 2))))
    lower, upper = (line.points[0][1] for line in curves(canvas))
    floor = max(
        s.points[0][1]
        for s in canvas.shapes
        if isinstance(s, Line) and not s.hint and s.points[0][1] == s.points[1][1]
    )
    assert math.isclose((floor - upper) / (floor - lower), 3.0)


def test_a_limit_near_the_data_is_shown(panel: Any) -> None:
    """Data up to 2, limit 4.7: inside 2.5 times the data, so the axis reaches it; limit 100 is left out."""
    steps = [
        {"value": None, "color": "transparent"},
        {"value": 4.7, "color": "#E69F00"},
        {"value": 100, "color": "#D55E00"},
    ]
    defaults = {
        "min": 0,
        "thresholds": {"steps": steps},
        "custom": {"thresholdsStyle": {"mode": "line+area"}},
    }
    canvas = drawn(panel("timeseries", ["x"], defaults=defaults), Series({"a": "1"}, ((0, 2), (5, 2))))
    limits = [s.hint for s in canvas.shapes if isinstance(s, Line) and s.hint.startswith("limit")]
    assert limits == ["limit 4.7"]


def test_an_event_is_a_dashed_line_with_its_name(panel: Any) -> None:
    """And one outside the range is not drawn."""
    events = [Event(50, "Deploys", "#0072B2"), Event(500, "Alerts", "#D55E00")]
    canvas = drawn(panel("timeseries", ["x"]), Series({"a": "1"}, ((0, 2), (5, 2))), events=events)
    assert [s.hint for s in canvas.shapes if isinstance(s, Line) and s.dashed] == ["Deploys"]


def test_many_series_end_in_a_count(panel: Any) -> None:
    """A legend that does not fit says how many are left out, inside the panel."""
    series = [Series({"a": f"instance-number-{i}.example"}, ((0, i), (5, i))) for i in range(40)]
    canvas = drawn(panel("timeseries", ["x"]), *series)
    texts = [s for s in canvas.shapes if isinstance(s, Text)]
    assert any(s.text.startswith("+") and s.text.endswith(" more") for s in texts)
    assert all(s.y <= canvas.height and s.x <= canvas.width for s in texts)


def test_what_plain_numbers_count_stands_above_the_axis(panel: Any) -> None:
    """The label is over the highest tick, and neither hides the other."""
    one = panel("timeseries", ["x"])
    one["fieldConfig"]["defaults"] |= {"unit": "none", "custom": {"axisLabel": "tokens per second"}}
    texts = [s for s in drawn(one, Series({"a": "1"}, ((0, 1), (5, 4)))).shapes if isinstance(s, Text)]

    (label,) = (text for text in texts if text.text == "tokens per second")
    ticks = [text for text in texts if text.anchor == "end"]
    assert ticks and all(tick.y - label.y >= 8 for tick in ticks)


def test_a_long_name_leaves_its_value_inside_the_panel(panel: Any) -> None:
    """The name is cut, never the value behind it."""
    series = Series({"a": "a very long name of a series " * 9}, ((0, 1), (5, 123456789.0), (10, 3)))
    canvas = Canvas(230, 300)
    one = panel("timeseries", ["x"])
    draw(canvas, one, tracks(one, [Answer("A", "{{a}}", "time_series", [series])]), VIEW, [])

    (value,) = (s for s in canvas.shapes if isinstance(s, Text) and "max" in s.text)
    assert value.x + text_width(value.text) <= canvas.width
