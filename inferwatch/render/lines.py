"""A time series panel -> lines or stacked areas, limits, axes and a legend with last and highest values."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inferwatch.render import ticks
from inferwatch.render.canvas import Area, Canvas, Line, Point, Rect
from inferwatch.render.fetch import Event
from inferwatch.render.fields import Field, Track
from inferwatch.render.frame import (
    HEAD,
    PAD,
    Plot,
    axis_title,
    gutter,
    legend,
    legend_rows,
    mark_events,
    time_axis,
    value_axis,
)
from inferwatch.render.theme import SERIES, settled
from inferwatch.render.units import show
from inferwatch.render.variables import Window

Json = Mapping[str, Any]


def draw(canvas: Canvas, panel: Json, found: Sequence[Track], view: Window, events: Sequence[Event]) -> None:
    """Draw *found* over *view*."""
    settings = panel["fieldConfig"]["defaults"]
    custom = settings.get("custom", {})
    stacked = custom.get("stacking", {}).get("mode") == "normal"
    colours = [t.field.fixed_colour or SERIES[i % len(SERIES)] for i, t in enumerate(found)]
    layers = _stacked(found) if stacked else [t.points for t in found]
    shared = found[0].field
    plot, marks = _plot(canvas, settings, [v for layer in layers for _, v in layer], view, shared)
    entries = [(c, t.field.name, _summary(t)) for c, t in zip(colours, found, strict=True)]
    rows = legend_rows(entries, canvas.width - plot.left - PAD, 3 if canvas.height > 260 else 2)
    plot = Plot(
        plot.left, plot.top, plot.right, canvas.height - 32 - rows * 15, view, plot.low, plot.high, plot.warp
    )
    value_axis(canvas, plot, marks)
    time_axis(canvas, plot)
    _limits(canvas, plot, settings)
    pairs = list(zip(layers, colours, found, strict=True))
    below: Sequence[tuple[float, float]] = ()
    for layer, colour, track in pairs:
        _series(canvas, plot, layer, below, colour, track, custom, stacked)
        below = layer if stacked else ()
    mark_events(canvas, plot, events)
    legend(canvas, entries, plot.left, canvas.height - 9, rows)


def _plot(
    canvas: Canvas, settings: Json, values: Sequence[float], view: Window, shared: Field
) -> tuple[Plot, list[tuple[float, str]]]:
    real = [v for v in values if math.isfinite(v)]
    log = settings.get("custom", {}).get("scaleDistribution", {}).get("type") == "log"
    low, high = _bounds(settings, real, log)
    top = HEAD + 4 + axis_title(canvas, settings.get("custom", {}).get("axisLabel", ""))
    height = canvas.height - top - 44
    if log:
        values_at = ticks.logarithmic(low, high)
    elif shared.unit == "s" and low == 0:
        values_at = ticks.seconds_ticks(high, int(height / 34))
    elif shared.unit == "bytes" and low == 0:
        values_at = ticks.bytes_ticks(high, int(height / 34))
    else:
        values_at = ticks.linear(low, high, max(int(height / 34), 2))
    marks = [(v, show(v, shared.unit)) for v in values_at]
    left = gutter([text for _, text in marks])
    warp = math.log10 if log else float
    return Plot(left, top, canvas.width - PAD, canvas.height - 46, view, low, high, warp), marks


def _bounds(settings: Json, real: Sequence[float], log: bool) -> tuple[float, float]:
    """Lowest and highest value shown: as configured, else the data's, with a limit that lies near."""
    top = max(real, default=1.0)
    limits = [s["value"] for s in settings["thresholds"]["steps"] if s["value"] is not None]
    near = [v for v in limits if top < v <= top * 2.5] if top > 0 else []
    high = settings.get("max", max([top, *near]) * 1.06)
    low = settings.get("min", min([*real, high]) if real else 0.0)
    if log:
        low = min((v for v in real if v > 0), default=high / 10)
    if high <= low:
        high = low + (abs(low) * 0.1 or 1.0)
    return low, high


def _stacked(found: Sequence[Track]) -> list[Sequence[tuple[float, float]]]:
    """Running sums; where one series has no sample it adds nothing."""
    base: dict[float, float] = {}
    layers: list[Sequence[tuple[float, float]]] = []
    for track in found:
        given = {t: v for t, v in track.points if math.isfinite(v)}
        for t, v in given.items():
            base[t] = base.get(t, 0.0) + v
        layers.append(tuple((t, base[t]) for t in sorted(base)))
    return layers


def _runs(points: Sequence[tuple[float, float]], step: float) -> list[list[tuple[float, float]]]:
    """Cut at gaps: a missing sample is never bridged by a line."""
    runs: list[list[tuple[float, float]]] = []
    last = -math.inf
    for t, v in points:
        if not math.isfinite(v):
            continue
        if t - last > 1.5 * step:
            runs.append([])
        runs[-1].append((t, v))
        last = t
    return runs


def _series(
    canvas: Canvas, plot: Plot, layer: Sequence[tuple[float, float]], below: Sequence[tuple[float, float]],
    colour: str, track: Track, custom: Json, stacked: bool,
) -> None:  # fmt: skip
    floor = dict(below)
    for run in _runs(layer, plot.view.step_seconds):
        line: tuple[Point, ...] = tuple((plot.x(t), plot.y(v)) for t, v in run)
        if len(line) == 1:
            canvas.add(Rect(line[0][0] - 2, line[0][1] - 2, 4, 4, colour, radius=2, hint=track.field.name))
            continue
        base = [(plot.x(t), plot.y(floor.get(t, plot.low))) for t, _ in reversed(run)]
        opacity = custom.get("fillOpacity", 0) / 100
        if opacity:
            canvas.add(Area((*line, *base), colour, opacity if stacked else opacity * 0.8))
        canvas.add(Line(line, colour, 1.2 if stacked else 1.6, hint=track.field.name))


def _limits(canvas: Canvas, plot: Plot, settings: Json) -> None:
    if settings.get("custom", {}).get("thresholdsStyle", {}).get("mode", "off") == "off":
        return
    for step in settings["thresholds"]["steps"]:
        if step["value"] is None or not plot.low <= step["value"] <= plot.high:
            continue
        y, colour = plot.y(step["value"]), settled(step["color"])
        canvas.add(
            Rect(plot.left, plot.top, plot.right - plot.left, y - plot.top, colour, 0.05),
            Line(((plot.left, y), (plot.right, y)), colour, 1.2, True, 0.9,
                 f"limit {show(step['value'], settings.get('unit', 'short'))}"),
        )  # fmt: skip


def _summary(track: Track) -> str:
    real = [v for _, v in track.points if math.isfinite(v)]
    if not real:
        return "n/a"
    last, top = track.field.text(real[-1]), track.field.text(max(real))
    return last if last == top else f"{last} · max {top}"
