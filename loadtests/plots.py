"""Samples and points -> SVG charts, dark and light, with the shapes that dashboards are drawn with."""

from collections.abc import Sequence
from dataclasses import dataclass

from inferwatch.render import ticks
from inferwatch.render.canvas import Canvas, Line, Point, Rect, Text
from inferwatch.render.svg import svg
from inferwatch.render.theme import SERIES

_WIDTH, _HEIGHT = 560.0, 320.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 34.0, 44.0
_MOST_STEPS = 400


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a scatter chart; *hint* shows under the pointer, *series* chooses the colour."""

    x: float
    y: float
    label: str
    hint: str
    series: int = 0
    hollow: bool = False


class _Axes:
    """Linear axes over ranges, drawn on a canvas."""

    def __init__(
        self, title: str, x_text: str, y_text: str, x_top: float, y_top: float, x_low: float = 0.0
    ) -> None:
        self.canvas = Canvas(_WIDTH, _HEIGHT)
        self._x_low, self._x_top, self._y_top = x_low, max(x_top, x_low + 1e-9), y_top or 1.0
        add = self.canvas.add
        add(Rect(0, 0, _WIDTH, _HEIGHT, "panel", radius=6, border="border"))
        add(
            Text(12, 20, title, size=13, bold=True),
            Text(_WIDTH - _RIGHT, _HEIGHT - 8, x_text, "muted", anchor="end"),
        )
        add(Text(_LEFT - 8, _TOP - 2, y_text, "muted", size=10))
        for value in ticks.linear(self._x_low, self._x_top, 6):
            x, _ = self.at(value, 0)
            add(Line(((x, _TOP + 4), (x, _HEIGHT - _BOTTOM)), "grid"))
            add(Text(x, _HEIGHT - _BOTTOM + 14, f"{value:g}", "muted", anchor="middle"))
        for value in ticks.linear(0, self._y_top, 5):
            _, y = self.at(0, value)
            add(Line(((_LEFT, y), (_WIDTH - _RIGHT, y)), "grid"))
            add(Text(_LEFT - 6, y + 4, f"{value:g}", "muted", anchor="end"))

    def at(self, x: float, y: float) -> Point:
        across = (x - self._x_low) / (self._x_top - self._x_low)
        plot_height = _HEIGHT - _BOTTOM - _TOP - 4
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - y / self._y_top * plot_height


def distribution_chart(title: str, series: Sequence[tuple[str, Sequence[float]]], unit: str = "ms") -> str:
    """Cumulative share of ascending samples in seconds, one line a series, cut at the largest P99.5."""
    known = [(name, ordered) for name, ordered in series if ordered]
    top = max(
        (ordered[min(int(len(ordered) * 0.995), len(ordered) - 1)] for _, ordered in known), default=0.001
    )
    axes = _Axes(title, unit, "share of samples", top * 1e3, 1.0)
    for index, (name, ordered) in enumerate(known):
        colour = SERIES[index % len(SERIES)]
        axes.canvas.add(Line(_steps(axes, ordered, top), colour, 2.0, hint=name))
        y = _HEIGHT - _BOTTOM - 10 - 16 * (len(known) - 1 - index)
        axes.canvas.add(Rect(_WIDTH - 190, y - 9, 10, 10, colour, radius=2), Text(_WIDTH - 175, y, name))
    return svg(axes.canvas)


def scatter_chart(title: str, x_text: str, y_text: str, marks: Sequence[Mark], front: Sequence[Mark]) -> str:
    """Points, hollow where the promise was not kept, and the line through *front*."""
    x_top = max((mark.x for mark in marks), default=1.0) * 1.08
    y_top = max((mark.y for mark in marks), default=1.0) * 1.08
    axes = _Axes(title, x_text, y_text, x_top, y_top)
    if len(front) > 1:
        axes.canvas.add(Line(tuple(axes.at(mark.x, mark.y) for mark in front), "text", 1.5, dashed=True))
    for mark in marks:
        x, y = axes.at(mark.x, mark.y)
        colour = SERIES[mark.series % len(SERIES)]
        fill = "panel" if mark.hollow else colour
        axes.canvas.add(Rect(x - 5, y - 5, 10, 10, fill, radius=5, border=colour, hint=mark.hint))
        axes.canvas.add(Text(x + 8, y + 4, mark.label, "muted", size=9))
    return svg(axes.canvas)


def _steps(axes: _Axes, ordered: Sequence[float], top: float) -> tuple[Point, ...]:
    count = len(ordered)
    stride = max(1, count // _MOST_STEPS)
    points = [axes.at(0, 0)]
    for index in range(0, count, stride):
        if ordered[index] > top:
            break
        points.append(axes.at(ordered[index] * 1e3, (index + 1) / count))
    return tuple(points)
