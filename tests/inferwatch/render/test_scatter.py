"""XY charts: a point where both series have a value, and words where none has."""

import math
from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.canvas import Canvas, Rect, Text
from inferwatch.render.fetch import Answer
from inferwatch.render.fields import tracks
from inferwatch.render.scatter import draw
from inferwatch.render.variables import window


def drawn(panel: Any, *series: Series) -> Canvas:
    """The panel with *series*, a query each, on a canvas of 600 × 300."""
    canvas = Canvas(600, 300)
    given = [Answer(ref, "{{a}}", "time_series", (one,)) for ref, one in zip("AB", series, strict=False)]
    draw(canvas, tracks(panel("xychart", ["x", "y"]), given), window(0, 100, 5))
    return canvas


def points(canvas: Canvas) -> list[Rect]:
    """What is drawn of the data."""
    return [s for s in canvas.shapes if isinstance(s, Rect) and s.hint]


def test_a_point_a_moment_that_both_have(panel: Any) -> None:
    """x at 0, 5, 10 and y at 5, 10, 15, of which one is NaN: one point, right by 2 and up by 4."""
    across = Series({"a": "latency"}, ((0, 1), (5, 2), (10, 3)))
    up = Series({"a": "drift"}, ((5, 4), (10, math.nan), (15, 6)))
    (point,) = points(drawn(panel, across, up))

    assert point.hint == "latency: 2, drift: 4"


def test_twice_the_value_is_twice_as_far(panel: Any) -> None:
    """(1, 1) and (2, 2): the same distance from the second to the first as from the first to the corner."""
    across = Series({"a": "x"}, ((0, 1), (5, 2)))
    first, second = points(drawn(panel, across, Series({"a": "y"}, ((0, 1), (5, 2)))))

    assert second.x > first.x and second.y < first.y
    assert second.opacity > first.opacity


def test_without_pairs_it_says_so(panel: Any) -> None:
    """One series alone has nothing to be held against."""
    canvas = drawn(panel, Series({"a": "x"}, ((0, 1),)))

    assert points(canvas) == []
    assert any(isinstance(s, Text) and "no moment has both" in s.text for s in canvas.shapes)
