"""A heatmap panel -> buckets in order, cells coloured by how many observations fell in each."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferwatch.promapi import Series
from inferwatch.render import theme
from inferwatch.render.canvas import Canvas, Cells, Rect, Text, fit, text_width
from inferwatch.render.fetch import Answer, Event
from inferwatch.render.fields import series_name
from inferwatch.render.frame import HEAD, PAD, Plot, axis_title, gutter, mark_events, time_axis, value_axis
from inferwatch.render.units import show
from inferwatch.render.variables import Window

Json = Mapping[str, Any]
_TURNED = frozenset({"RdYlBu", "RdYlGn", "Spectral"})


@dataclass(frozen=True)
class Buckets:
    """Upper bounds from low to high, and for each the observations of that bucket alone by time."""

    bounds: tuple[float, ...]
    counts: tuple[Mapping[float, float], ...]


class BucketError(ValueError):
    """The answer is no histogram that can be shown as a heatmap."""


def buckets(series: Sequence[Series]) -> Buckets:
    """Cumulative series by `le` -> observations per bucket, in the order of their bounds as numbers.

    Raises BucketError when a series has no `le`, or when two have the same one.
    """
    by_bound: dict[float, Series] = {}
    for one in series:
        if "le" not in one.labels:
            raise BucketError(f"a heatmap needs series by le alone, found {dict(one.labels)}")
        bound = float(one.labels["le"])
        if bound in by_bound:
            raise BucketError(f"two series have le={one.labels['le']!r}; sum them by le alone")
        by_bound[bound] = one
    bounds = tuple(sorted(by_bound))
    counts, below = [], dict[float, float]()
    for bound in bounds:
        here = {t: v for t, v in by_bound[bound].points if math.isfinite(v)}
        # A scrape between two buckets of one histogram can make a sum dip by a hair: never below nothing.
        counts.append({t: max(v - below.get(t, 0.0), 0.0) for t, v in here.items()})
        below = here
    return Buckets(bounds, tuple(counts))


def draw(canvas: Canvas, panel: Json, given: Sequence[Answer], view: Window, events: Sequence[Event]) -> None:
    """Draw the first answer over *view*: a histogram, or a row a series where its format is not heatmap."""
    if given[0].format != "heatmap":
        _draw_rows(canvas, panel, given[0], view, events)
        return
    found = buckets(given[0].series)
    used = [i for i, counts in enumerate(found.counts) if any(counts.values())]
    if not used:
        canvas.add(Text(canvas.width / 2, canvas.height / 2, "no observations", "muted", 13, "middle"))
        return
    first, last = max(used[0] - 1, 0), min(used[-1] + 1, len(found.bounds) - 1)
    bounds, counts = found.bounds[first : last + 1], found.counts[first : last + 1]
    axis = panel["options"]["yAxis"]
    unit, above = axis.get("unit", "short"), HEAD + 6 + axis_title(canvas, axis.get("axisLabel", ""))
    marks = [(i + 1.0, _bound(b, unit)) for i, b in enumerate(bounds)]
    plot = Plot(
        gutter([text for _, text in marks]), above, canvas.width - PAD - 46, canvas.height - 30, view,
        0, float(len(bounds)),
    )  # fmt: skip
    top = max(v for row in counts for v in row.values())
    colour = panel["options"]["color"]
    times = _times(view)
    rows = tuple(tuple(_cell(row.get(t, 0.0), top, colour) for t in times) for row in reversed(counts))
    value_axis(canvas, plot, marks)
    time_axis(canvas, plot)
    canvas.add(Cells(plot.left, plot.top, plot.right - plot.left, plot.bottom - plot.top, rows))
    mark_events(canvas, plot, events)
    _colour_bar(canvas, plot, top, colour)


def _draw_rows(canvas: Canvas, panel: Json, answer: Answer, view: Window, events: Sequence[Event]) -> None:
    """One row a series, first at the bottom, coloured between the panel's least and most."""
    series = sorted(answer.series, key=lambda s: series_name(answer, s.labels))
    names = [fit(series_name(answer, s.labels), canvas.width * 0.3, 10) for s in series]
    colour = panel["options"]["color"]
    top = colour.get("max") or max((v for s in series for _, v in s.points if math.isfinite(v)), default=1.0)
    left = gutter(names)
    plot = Plot(left, HEAD + 6, canvas.width - PAD - 46, canvas.height - 30, view, 0, float(len(series)))
    shown = [{t: v for t, v in s.points if math.isfinite(v)} for s in series]
    rows = tuple(
        tuple(_shade(row[t], top, colour) if t in row else "" for t in _times(view))
        for row in reversed(shown)
    )
    time_axis(canvas, plot)
    canvas.add(Cells(plot.left, plot.top, plot.right - plot.left, plot.bottom - plot.top, rows))
    for place, name in enumerate(names):
        canvas.add(Text(left - 6, plot.y(place + 0.5) + 3.5, name, "muted", 10, "end"))
    mark_events(canvas, plot, events)
    _colour_bar(canvas, plot, top, colour, panel["options"].get("cellValues", {}).get("unit", "short"))


def _times(view: Window) -> list[float]:
    steps = int((view.end - view.start) / view.step_seconds)
    return [view.start + i * view.step_seconds for i in range(steps + 1)]


def _bound(bound: float, unit: str) -> str:
    return "over" if math.isinf(bound) else show(bound, unit)


def _cell(value: float, top: float, colour: Json) -> str:
    return _shade(value, top, colour) if value > 1e-9 else ""


def _shade(value: float, top: float, colour: Json) -> str:
    return _scale(colour, min(value / top, 1.0))


def _scale(colour: Json, share: float) -> str:
    """Grafana's heatmaps turn diverging schemes round, so that red is more, unless they are reversed."""
    place = 0.08 + 0.92 * share ** colour["exponent"]
    turned = (colour["scheme"] in _TURNED) != bool(colour.get("reverse"))
    return theme.scale(colour["scheme"], 1 - place if turned else place)


def _colour_bar(canvas: Canvas, plot: Plot, top: float, colour: Json, unit: str = "short") -> None:
    """What the brightness means, right of the plot."""
    x, steps = plot.right + 8, 24
    height = (plot.bottom - plot.top) / steps
    for i in range(steps):
        share = (i + 0.5) / steps
        fill = _scale(colour, share)
        canvas.add(Rect(x, plot.bottom - (i + 1) * height, 7, height + 0.5, fill))
    for share in (0.0, 0.5, 1.0):
        text = show(float(f"{top * share:.2g}"), unit)
        size = 9.0 if text_width(text, 9) > 34 else 10.0
        y = plot.bottom - share * (plot.bottom - plot.top)
        canvas.add(Text(x + 11, y + (3.5 if 0 < share < 1 else 0 if share == 0 else 8), text, "muted", size))
