"""State timelines: neighbours of one state are one span, a missing sample is none."""

from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.canvas import Canvas, Rect
from inferwatch.render.fetch import Answer
from inferwatch.render.fields import tracks
from inferwatch.render.spans import draw
from inferwatch.render.variables import window

STATES = [
    {
        "type": "value",
        "options": {"0": {"text": "down", "color": "#D55E00"}, "1": {"text": "up", "color": "#009E73"}},
    }
]


def test_states_are_spans_and_unknown_is_a_hole(panel: Any) -> None:
    """up, up, down, nothing, up: three spans, and the hole is not coloured."""
    one = panel("state-timeline", ["x"], defaults={"mappings": STATES})
    series = (Series({"a": "engine"}, ((0, 1), (5, 1), (10, 0), (20, 1))),)
    canvas = Canvas(600, 150)
    draw(canvas, one, tracks(one, [Answer("A", "{{a}}", "time_series", series)]), window(0, 25, 5), [])
    spans = [(s.hint, s.fill) for s in canvas.shapes if isinstance(s, Rect) and s.hint]
    assert spans == [
        ("engine: up", "#009E73"),
        ("engine: down", "#D55E00"),
        ("engine: up", "#009E73"),
    ]
    first, second, third = [s for s in canvas.shapes if isinstance(s, Rect) and s.hint]
    assert first.x + first.width == second.x
    assert third.x > second.x + second.width
