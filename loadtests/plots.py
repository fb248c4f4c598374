"""Samples and points -> SVG charts, dark and light, with the shapes that dashboards are drawn with."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from inferwatch.render import ticks
from inferwatch.render.canvas import Canvas, Line, Point, Rect, Text, fit, text_width
from inferwatch.render.svg import svg
from inferwatch.render.theme import SERIES

_WIDTH, _HEIGHT = 560.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 34.0, 44.0
_MOST_STEPS = 400
_LOG_FROM = 10.0
_WIDEST_LEGEND = 160.0


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a chart; *hint* shows under the pointer, *series* chooses the colour, *low* to *high* is its interval."""

    x: float
    y: float
    label: str
    hint: str
    series: int = 0
    hollow: bool = False
    crossed: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class _Range:
    """A stretch of values; *log* spreads it by factors instead of differences. *names* stand for 0, 1, … where given."""

    low: float
    high: float
    log: bool = False
    names: tuple[str, ...] = ()

    def share(self, value: float) -> float:
        """Where *value* lies, 0 at the low end, 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def marks(self, about: int) -> list[float]:
        """Round values inside, or those that have a name."""
        if self.names:
            return [float(place) for place in range(len(self.names))]
        if not self.log:
            return ticks.linear(self.low, self.high, about)
        fine = [power * step for power in ticks.logarithmic(self.low, self.high) for step in (1, 2, 5)]
        return [value for value in fine if self.low <= value <= self.high]

    def text(self, value: float) -> str:
        """What stands at *value*."""
        return self.names[int(value)] if self.names else f"{value:g}"


class _Axes:
    """Two ranges, drawn as a grid on a canvas."""

    def __init__(
        self, title: str, x_text: str, y_text: str, x: _Range, y: _Range, right: float = _RIGHT
    ) -> None:
        self.canvas = Canvas(_WIDTH, _HEIGHT)
        self._x, self._y = x, y
        self.width = _WIDTH - _LEFT - right
        add = self.canvas.add
        add(Rect(0, 0, _WIDTH, _HEIGHT, "panel", radius=6, border="border"))
        add(Text(12, 20, title, size=13, bold=True))
        add(Text(_WIDTH - _RIGHT, _HEIGHT - 8, x_text, "muted", anchor="end"))
        add(Text(_LEFT - 8, _TOP - 2, y_text, "muted", size=10))
        for value in x.marks(6):
            across, _ = self.at(value, y.low)
            add(Line(((across, _TOP + 4), (across, _HEIGHT - _BOTTOM)), "grid"))
            add(Text(across, _HEIGHT - _BOTTOM + 14, x.text(value), "muted", anchor="middle"))
        for value in y.marks(5):
            _, up = self.at(x.low, value)
            add(Line(((_LEFT, up), (_LEFT + self.width, up)), "grid"))
            add(Text(_LEFT - 6, up + 4, f"{value:g}", "muted", anchor="end"))

    def at(self, x: float, y: float) -> Point:
        """Pixels of a point."""
        height = _HEIGHT - _BOTTOM - _TOP - 4
        across = _LEFT + self._x.share(x) * self.width
        return across, _HEIGHT - _BOTTOM - self._y.share(y) * height


def distribution_chart(title: str, series: Sequence[tuple[str, Sequence[float]]], unit: str = "ms") -> str:
    """Cumulative share of ascending samples in seconds, one line a series, cut at the largest P99.5."""
    known = [(name, ordered) for name, ordered in series if ordered]
    top = max(
        (ordered[min(int(len(ordered) * 0.995), len(ordered) - 1)] for _, ordered in known), default=0.001
    )
    axes = _Axes(title, unit, "share of samples", _Range(0, max(top, 1e-6) * 1e3), _Range(0, 1))
    for index, (name, ordered) in enumerate(known):
        colour = SERIES[index % len(SERIES)]
        axes.canvas.add(Line(_steps(axes, ordered, top), colour, 2.0, hint=name))
        y = _HEIGHT - _BOTTOM - 10 - 16 * (len(known) - 1 - index)
        axes.canvas.add(Rect(_WIDTH - 190, y - 9, 10, 10, colour, radius=2), Text(_WIDTH - 175, y, name))
    return svg(axes.canvas)


def scatter_chart(title: str, x_text: str, y_text: str, marks: Sequence[Mark], front: Sequence[Mark]) -> str:
    """Points, hollow where the promise was not kept, crossed out where not compared, and the line through *front*."""
    axes = _Axes(title, x_text, y_text, _around([mark.x for mark in marks]), _up(marks))
    if len(front) > 1:
        axes.canvas.add(Line(tuple(axes.at(mark.x, mark.y) for mark in front), "text", 1.5, dashed=True))
    taken: list[Point] = []
    for mark in marks:
        x, y = axes.at(mark.x, mark.y)
        _dot(axes.canvas, mark, x, y)
        axes.canvas.add(_label(mark.label, x, y, taken))
    return svg(axes.canvas)


def line_chart(title: str, x_text: str, y_text: str, marks: Sequence[Mark], names: Sequence[str] = ()) -> str:
    """One line a series with the interval of each point; with *names* for x = 0, 1, … points beside each other, no lines."""
    series = {mark.series: mark.label for mark in marks}
    legend = max((text_width(name, 9) for name in series.values() if name), default=0.0)
    right = _RIGHT + (min(legend, _WIDEST_LEGEND) + 24 if legend else 0)
    along = _Range(-0.5, len(names) - 0.5, names=tuple(names)) if names else _around([m.x for m in marks])
    axes = _Axes(title, x_text, y_text, along, _up(marks), right)
    step = min(14.0, 0.8 * axes.width / max(len(names) * len(series), 1)) if names else 0.0
    for place, number in enumerate(series):
        own = sorted((mark for mark in marks if mark.series == number), key=lambda mark: mark.x)
        aside = step * (place - (len(series) - 1) / 2)
        spots = [(x + aside, y) for x, y in (axes.at(mark.x, mark.y) for mark in own)]
        colour = SERIES[number % len(SERIES)]
        if not names:
            axes.canvas.add(Line(tuple(spots), colour, 2.0, hint=series[number]))
        for mark, (x, y) in zip(own, spots, strict=True):
            _whiskers(axes, mark, x)
            _dot(axes.canvas, mark, x, y)
        if series[number]:
            x, y = _LEFT + axes.width + 10, _TOP + 16 + 16 * place
            name = fit(series[number], _WIDEST_LEGEND, 9)
            axes.canvas.add(Rect(x, y - 8, 8, 8, colour, radius=2), Text(x + 12, y, name, "muted", size=9))
    return svg(axes.canvas)


def _whiskers(axes: _Axes, mark: Mark, x: float) -> None:
    if mark.low is None or mark.high is None:
        return
    colour = SERIES[mark.series % len(SERIES)]
    low, high = axes.at(mark.x, mark.low)[1], axes.at(mark.x, mark.high)[1]
    for points in (((x, low), (x, high)), ((x - 4, low), (x + 4, low)), ((x - 4, high), (x + 4, high))):
        axes.canvas.add(Line(points, colour, 1.5))


def _dot(canvas: Canvas, mark: Mark, x: float, y: float) -> None:
    colour = SERIES[mark.series % len(SERIES)]
    fill = "panel" if mark.hollow else colour
    canvas.add(Rect(x - 5, y - 5, 10, 10, fill, radius=5, border=colour, hint=mark.hint))
    if mark.crossed:
        canvas.add(*(Line(((x - 7, y + 7 * way), (x + 7, y - 7 * way)), "error", 1.5) for way in (1, -1)))


def _around(values: Sequence[float]) -> _Range:
    """A range with air around *values*; by factors when they are more than a factor of ten apart."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and high / low > _LOG_FROM:
        return _Range(low / 1.4, high * 1.4, log=True)
    return _Range(0, (high or 1.0) * 1.08)


def _up(marks: Sequence[Mark]) -> _Range:
    """From 0, or from the lowest where a figure is below 0, to over the highest point or interval."""
    values = [value for mark in marks for value in (mark.y, mark.low, mark.high) if value is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    return _Range(min(0.0, low * 1.08), max(high * 1.08, 0.0) if low < 0 else high * 1.08 or 1.0)


def _label(text: str, x: float, y: float, taken: list[Point]) -> Text:
    """Beside the point, on the side with room, moved down where another label stands already."""
    width = text_width(text, 9)
    left = x + 10 + width > _WIDTH - _RIGHT
    up = y + 3
    while any(abs(up - other) < 10 and abs(x - beside) < width + 6 for beside, other in taken):
        up += 11
    taken.append((x, up))
    return Text(x - 9 if left else x + 9, up, text, "muted", size=9, anchor="end" if left else "start")


def _steps(axes: _Axes, ordered: Sequence[float], top: float) -> tuple[Point, ...]:
    count = len(ordered)
    stride = max(1, count // _MOST_STEPS)
    points = [axes.at(0, 0)]
    for index in range(0, count, stride):
        if ordered[index] > top:
            break
        points.append(axes.at(ordered[index] * 1e3, (index + 1) / count))
    return tuple(points)
