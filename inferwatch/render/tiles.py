"""Stat and bar gauge panels -> large numbers with a faint history, or bars beside each other."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inferwatch.render.canvas import Area, Canvas, Line, Rect, Text, fit, text_width
from inferwatch.render.fields import Track
from inferwatch.render.frame import HEAD, PAD
from inferwatch.render.units import show
from inferwatch.render.variables import Window

Json = Mapping[str, Any]


def draw_stat(canvas: Canvas, panel: Json, found: Sequence[Track], view: Window) -> None:
    """One tile a series, side by side where there is room, else under each other."""
    named = panel["options"].get("textMode") in {"value_and_name", "name"} or len(found) > 1
    width, height = canvas.width - 2 * PAD, canvas.height - HEAD - 8
    columns = max(1, min(len(found), int(width // 118)))
    rows = -(-len(found) // columns)
    for number, track in enumerate(found):
        x = PAD + number % columns * width / columns
        y = HEAD + number // columns * height / rows
        _tile(canvas, panel, track, (x, y, width / columns - 6, height / rows - 4), view, named)


def _tile(
    canvas: Canvas, panel: Json, track: Track, box: tuple[float, float, float, float], view: Window, named: bool
) -> None:  # fmt: skip
    x, y, width, height = box
    last = track.last
    text = track.field.text(last) if last is not None else str(track.field.settings.get("noValue", "no data"))
    colour = track.field.colour(last, "text") if last is not None else "muted"
    if panel["options"].get("graphMode") == "area":
        _spark(canvas, track, box, view, colour)
    size = min(height * (0.42 if named else 0.52), 40.0)
    while size > 11 and text_width(text, size, True) > width:
        size -= 1
    middle = y + height * (0.42 if named else 0.5) + size * 0.35
    canvas.add(Text(x + width / 2, middle, fit(text, width + 8, size, True), colour, size, "middle", True))
    if named:
        name = fit(track.field.name, width)
        canvas.add(Text(x + width / 2, middle + min(18.0, height * 0.3), name, "muted", 11, "middle"))


def _spark(
    canvas: Canvas, track: Track, box: tuple[float, float, float, float], view: Window, colour: str
) -> None:  # fmt: skip
    x, y, width, height = box
    real = [(t, v) for t, v in track.points if math.isfinite(v)]
    if len(real) < 2:
        return
    low, high = min(v for _, v in real), max(v for _, v in real)
    floor, tall = y + height, height * 0.3
    span = view.end - view.start or 1
    line = tuple(
        (x + (t - view.start) / span * width, floor - (0.12 + 0.88 * (v - low) / (high - low or 1)) * tall)
        for t, v in real
    )
    canvas.add(
        Area((*line, (line[-1][0], floor), (line[0][0], floor)), colour, 0.14),
        Line(line, colour, 1, opacity=0.55),
    )


def draw_bars(canvas: Canvas, panel: Json, found: Sequence[Track]) -> None:
    """One horizontal bar a series: name, bar, value."""
    room = canvas.height - HEAD - 10
    shown = found[: max(1, int(room // 20))]
    values = [t.last for t in shown if t.last is not None and math.isfinite(t.last)]
    names = min(max(text_width(t.field.name) for t in shown) + 10, canvas.width * 0.38)
    texts = [t.field.text(t.last) if t.last is not None else "no data" for t in shown]
    numbers = max(text_width(text, 12, True) for text in texts) + 8
    left, right = PAD + names, canvas.width - PAD - numbers
    height = min(room / len(shown), 34.0)
    for number, (track, text) in enumerate(zip(shown, texts, strict=True)):
        low = track.field.settings.get("min", 0.0)
        high = track.field.settings.get("max", max([*values, low + 1e-9]))
        y = HEAD + number * height
        canvas.add(
            Text(left - 8, y + height / 2 + 4, fit(track.field.name, names - 6), "text", 11, "end"),
            Rect(left, y + 3, right - left, height - 6, "empty", radius=2),
        )
        colour = track.field.colour(track.last) if track.last is not None else "muted"
        if track.last is not None and math.isfinite(track.last):
            share = min(max((track.last - low) / (high - low or 1), 0.0), 1.0)
            hint = f"{track.field.name}: {show(track.last, track.field.unit)}"
            canvas.add(Rect(left, y + 3, share * (right - left), height - 6, colour, radius=2, hint=hint))
        canvas.add(Text(right + 8, y + height / 2 + 4, text, colour, 12, bold=True))
    if len(found) > len(shown):
        canvas.add(
            Text(
                canvas.width - PAD, canvas.height - 4, f"+{len(found) - len(shown)} more", "muted", 10, "end"
            )
        )
