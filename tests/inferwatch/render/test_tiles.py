"""Stat tiles and bars: the value, its colour, and an honest "no data"."""

import math
from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.canvas import Canvas, Rect, Text
from inferwatch.render.fetch import Answer
from inferwatch.render.fields import tracks
from inferwatch.render.tiles import draw_bars, draw_stat
from inferwatch.render.variables import window

STEPS = {"steps": [{"value": None, "color": "#009E73"}, {"value": 4.7, "color": "#D55E00"}]}
COLOURED = {"color": {"mode": "thresholds"}, "thresholds": STEPS, "noValue": "no traffic"}


def test_a_value_over_its_threshold_takes_the_colour(panel: Any) -> None:
    """5 waiting requests are red, and NaN alone is "no traffic", never 0."""
    one = panel("stat", ["x"], defaults=COLOURED)
    series = (Series({"a": "busy"}, ((0, 1.0), (5, 5.0))), Series({"a": "idle"}, ((0, math.nan),)))
    canvas = Canvas(400, 150)
    draw_stat(canvas, one, tracks(one, [Answer("A", "{{a}}", "time_series", series)]), window(0, 10, 5))
    shown = {s.text: s.colour for s in canvas.shapes if isinstance(s, Text)}
    assert shown["5"] == "#D55E00"
    assert shown["no traffic"] == "muted"
    assert {"busy", "idle"} <= set(shown)


def test_a_bar_is_as_long_as_its_share(panel: Any) -> None:
    """0.25 of a maximum of 1 fills a quarter of the track."""
    one = panel("bargauge", ["x"], defaults={**COLOURED, "min": 0, "max": 1, "unit": "percentunit"})
    canvas = Canvas(400, 150)
    series = (Series({"a": "gpu 0"}, ((0, 0.25),)),)
    draw_bars(canvas, one, tracks(one, [Answer("A", "{{a}}", "time_series", series)]))
    ground, bar = [s for s in canvas.shapes if isinstance(s, Rect)]
    assert math.isclose(bar.width, ground.width / 4)
    assert "25 %" in [s.text for s in canvas.shapes if isinstance(s, Text)]
