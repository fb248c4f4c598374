"""What all drawings share: a plot area with its axes, legend, and the events of the page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from inferwatch.render import ticks
from inferwatch.render.canvas import Canvas, Line, Rect, Text, fit, text_width
from inferwatch.render.fetch import Event
from inferwatch.render.variables import Window

HEAD = 30.0
PAD = 12.0


@dataclass(frozen=True)
class Plot:
    """The rectangle in which values are drawn, with what its edges mean."""

    left: float
    top: float
    right: float
    bottom: float
    view: Window
    low: float = 0.0
    high: float = 1.0
    warp: Callable[[float], float] = float

    def x(self, at: float) -> float:
        """Unix seconds -> pixels."""
        span = self.view.end - self.view.start or 1
        return self.left + (at - self.view.start) / span * (self.right - self.left)

    def y(self, value: float) -> float:
        """Value -> pixels, kept inside the plot."""
        low, high = self.warp(self.low), self.warp(self.high)
        share = (self.warp(value) - low) / (high - low or 1)
        return self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - self.top)


def time_axis(canvas: Canvas, plot: Plot) -> None:
    """Clock times under the plot, with faint lines up."""
    for at, text in ticks.times(plot.view.start, plot.view.end, int((plot.right - plot.left) / 90)):
        x = plot.x(at)
        canvas.add(Line(((x, plot.top), (x, plot.bottom)), "grid"))
        half = text_width(text, 10) / 2
        if plot.left - PAD <= x - half and x + half <= plot.right + PAD:
            canvas.add(Text(x, plot.bottom + 14, text, "muted", 10, "middle"))


def value_axis(canvas: Canvas, plot: Plot, marks: Sequence[tuple[float, str]]) -> None:
    """Values left of the plot, with faint lines across; texts that would touch are left out."""
    last = float("inf")
    for value, text in marks:
        y = plot.y(value)
        canvas.add(Line(((plot.left, y), (plot.right, y)), "grid"))
        if last - y >= 12:
            canvas.add(Text(plot.left - 6, y + 3.5, text, "muted", 10, "end"))
            last = y


def axis_title(canvas: Canvas, label: str) -> float:
    """Write what the numbers on the axis count above them; return the pixels that it takes."""
    if not label:
        return 0.0
    canvas.add(Text(PAD, HEAD + 8, fit(label, canvas.width - 2 * PAD, 10), "muted", 10))
    return 14.0


def gutter(texts: Sequence[str]) -> float:
    """Pixels that the value axis needs left of the plot."""
    return PAD + max((text_width(t, 10) for t in texts), default=0.0) + 8


def mark_events(canvas: Canvas, plot: Plot, events: Sequence[Event]) -> None:
    """A dashed line with a foot where something happened."""
    for event in events:
        if plot.view.start <= event.at <= plot.view.end:
            x = plot.x(event.at)
            canvas.add(
                Line(((x, plot.top), (x, plot.bottom)), event.colour, 1, True, 0.5, event.name),
                Rect(x - 2.5, plot.bottom - 1, 5, 5, event.colour, hint=event.name),
            )


def legend(
    canvas: Canvas, entries: Sequence[tuple[str, str, str]], left: float, bottom: float, rows: int
) -> None:
    """(colour, name, value) entries in at most *rows* lines that end at *bottom*; the rest is counted."""
    right = canvas.width - PAD
    x, row = left, 0
    for number, (colour, name, value) in enumerate(entries):
        text, width = _entry(name, value, right - left)
        rest = f"+{len(entries) - number} more"
        last_row, more = row == rows - 1, number < len(entries) - 1
        room = right - (text_width(rest) + 10 if last_row and more else 0)
        if x > left and x + width - 14 > room:
            if last_row:
                canvas.add(Text(x, bottom - (rows - 1 - row) * 15, rest, "muted"))
                return
            x, row = left, row + 1
        y = bottom - (rows - 1 - row) * 15
        canvas.add(Rect(x, y - 6, 9, 4, colour, radius=1), Text(x + 14, y, text, "text", hint=name))
        if value:
            canvas.add(Text(x + 14 + text_width(text) + 4, y, value, "muted"))
        x += width


def _entry(name: str, value: str, room: float) -> tuple[str, float]:
    """The name as it is written, so that its mark and value fit into *room*, and the pixels of all three."""
    beside = 28 + (text_width(value) + 6 if value else 0)
    text = fit(name, min(room * 0.6, room - beside + 14))
    return text, beside + text_width(text)


def legend_rows(entries: Sequence[tuple[str, str, str]], width: float, at_most: int) -> int:
    """How many lines the legend needs in *width* pixels, at most *at_most*."""
    x, rows = 0.0, 1
    for _, name, value in entries:
        _, need = _entry(name, value, width)
        if x and x + need - 14 > width:
            x, rows = 0.0, rows + 1
        x += need
    return min(rows, at_most)
