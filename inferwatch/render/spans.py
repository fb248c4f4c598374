"""A state timeline panel -> a row a series, coloured spans with the state's name where it fits."""

from collections.abc import Mapping, Sequence
from typing import Any

from inferwatch.render.canvas import Canvas, Rect, Text, fit, text_width
from inferwatch.render.fetch import Event
from inferwatch.render.fields import Track
from inferwatch.render.frame import HEAD, PAD, Plot, legend, legend_rows, mark_events, time_axis
from inferwatch.render.theme import readable_on
from inferwatch.render.variables import Window

Json = Mapping[str, Any]


def draw(canvas: Canvas, panel: Json, found: Sequence[Track], view: Window, events: Sequence[Event]) -> None:
    """Draw each series' states over *view*; where there is no sample there is no span."""
    del panel
    entries = _entries(found)
    rows = legend_rows(entries, canvas.width - 2 * PAD, 2)
    names = min(max(text_width(t.field.name) for t in found) + 8, canvas.width * 0.3)
    plot = Plot(PAD + names, HEAD + 2, canvas.width - PAD, canvas.height - 32 - rows * 15, view)
    shown = found[: max(1, int((plot.bottom - plot.top) // 14))]
    time_axis(canvas, plot)
    height = min((plot.bottom - plot.top) / len(shown), 44.0)
    for number, track in enumerate(shown):
        y = plot.top + number * height
        canvas.add(
            Text(plot.left - 8, y + height / 2 + 4, fit(track.field.name, names - 4), "text", 11, "end")
        )
        for start, end, value in _spans(track, view.step_seconds):
            _span(canvas, track, value, (plot.x(start), y + 2, plot.x(min(end, view.end)), height - 4))
    mark_events(canvas, plot, events)
    legend(canvas, entries, PAD, canvas.height - 9, rows)
    if len(found) > len(shown):
        canvas.add(Text(plot.right, HEAD - 4, f"+{len(found) - len(shown)} more", "muted", 10, "end"))


def _span(canvas: Canvas, track: Track, value: float, box: tuple[float, float, float, float]) -> None:
    left, y, right, height = box
    colour = track.field.colour(value, "muted")
    text = track.field.text(value)
    hint = f"{track.field.name}: {text}"
    canvas.add(Rect(left, y, max(right - left, 1.0), height, colour, 0.9, hint=hint))
    if colour.startswith("#") and height >= 13 and text_width(text) + 8 < right - left:
        canvas.add(Text((left + right) / 2, y + height / 2 + 4, text, readable_on(colour), 11, "middle"))


def _spans(track: Track, step: float) -> list[tuple[float, float, float]]:
    """(start, end, value): neighbours of one value are one span, a missing sample ends it."""
    spans: list[tuple[float, float, float]] = []
    for t, v in track.points:
        if spans and spans[-1][2] == v and t - spans[-1][1] <= 0.5 * step:
            spans[-1] = (spans[-1][0], t + step, v)
        else:
            spans.append((t, t + step, v))
    return spans


def _entries(found: Sequence[Track]) -> list[tuple[str, str, str]]:
    """States seen, each once, in the order of their values."""
    seen = {(v, t.field.text(v)): t.field.colour(v, "muted") for t in found for _, v in t.points}
    return [(colour, text, "") for (_, text), colour in sorted(seen.items())]
