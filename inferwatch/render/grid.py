"""A table panel -> header, rows and coloured cells; a matrix is a table whose columns are values too."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from inferwatch.render.canvas import Canvas, Line, Rect, Text, fit, text_width
from inferwatch.render.fetch import Answer
from inferwatch.render.fields import Field, field
from inferwatch.render.frame import HEAD, PAD
from inferwatch.render.frames import Cell, Table, tabulate
from inferwatch.render.theme import readable_on, settled

Json = Mapping[str, Any]
ROW = 22.0


def draw(canvas: Canvas, panel: Json, given: Sequence[Answer]) -> None:
    """Draw the answers as a table after the panel's transformations."""
    table = tabulate(given, panel.get("transformations", ()))
    fields = [field(panel, name) for name in table.columns]
    room = int((canvas.height - HEAD - ROW - 10) // ROW)
    rows = table.rows if len(table.rows) <= room else table.rows[: max(room - 1, 1)]
    matrix = any(t["id"] == "groupingToMatrix" for t in panel.get("transformations", ()))
    room_wide = canvas.width - 2 * PAD
    widths = _even(fields, room_wide) if matrix else _widths(table, fields, room_wide)
    lefts = [PAD + sum(widths[:i]) for i in range(len(widths))]
    for place, (left, width, one) in enumerate(zip(lefts, widths, fields, strict=True)):
        name = one.name.replace("\\", " ↓  ") + " →" if matrix and "\\" in one.name else one.name
        shown, middle = fit(name, width - 10, bold=True), matrix and place > 0
        x, anchor = (left + width / 2, "middle") if middle else (left + 6, "start")
        canvas.add(Text(x, HEAD + 14, shown, "muted", 11, anchor, True))
    canvas.add(Line(((PAD, HEAD + ROW - 2), (canvas.width - PAD, HEAD + ROW - 2)), "border"))
    tall = min(ROW if not matrix else (canvas.height - HEAD - ROW - 10) / max(len(rows), 1), 40.0)
    for number, row in enumerate(rows):
        y = HEAD + ROW + number * tall
        for left, width, one, cell in zip(lefts, widths, fields, row, strict=True):
            _cell(canvas, one, cell, (left, y, width, tall))
    if len(rows) < len(table.rows):
        text = f"+{len(table.rows) - len(rows)} more rows"
        canvas.add(Text(PAD + 6, HEAD + ROW + len(rows) * tall + 14, text, "muted"))


def _text(one: Field, cell: Cell) -> str:
    if cell is None:
        return str(one.settings.get("noValue", "–"))
    if isinstance(cell, float):
        if one.name == "Time":
            return time.strftime("%H:%M:%S", time.localtime(cell))
        return one.text(cell)
    for mapping in one.settings.get("mappings", ()):
        if mapping["type"] == "value" and cell in mapping["options"]:
            return str(mapping["options"][cell].get("text", cell))
    return cell


def _colour(one: Field, cell: Cell) -> str:
    if isinstance(cell, float):
        return one.colour(cell) if not math.isnan(cell) else "muted"
    for mapping in one.settings.get("mappings", ()):
        if mapping["type"] == "value" and cell in mapping["options"]:
            return settled(str(mapping["options"][cell].get("color", "text")))
    return "text" if cell else "muted"


def _cell(canvas: Canvas, one: Field, cell: Cell, box: tuple[float, float, float, float]) -> None:
    left, y, width, height = box
    style = one.settings.get("custom", {}).get("cellOptions", {}).get("type", "auto")
    text, colour = fit(_text(one, cell), width - 10), _colour(one, cell)
    hint = _text(one, cell) if text.endswith("…") else ""
    filled = style == "color-background" and isinstance(cell, float) and colour.startswith("#")
    if filled:
        canvas.add(Rect(left + 1, y + 1, width - 2, height - 2, colour, radius=2))
    if colour == "transparent":
        colour = "muted"
    ink = readable_on(colour) if filled else colour if style.startswith("color") else "text"
    number = isinstance(cell, float) and style == "color-background"
    x = left + width / 2 if number else left + 6
    canvas.add(Text(x, y + height / 2 + 4, text, ink, 11, "middle" if number else "start", hint=hint))
    if not filled:
        canvas.add(Line(((left, y + height), (left + width, y + height)), "grid"))


def _even(fields: Sequence[Field], room: float) -> list[float]:
    """A matrix: the column of row names as wide as it needs, all others alike."""
    first = text_width(fields[0].name, bold=True) + 40
    return [first, *((room - first) / (len(fields) - 1) for _ in fields[1:])]


def _widths(table: Table, fields: Sequence[Field], room: float) -> list[float]:
    """Share *room* by what the columns hold, none under 44 pixels; too wide a content is cut."""
    wanted = []
    for place, one in enumerate(fields):
        texts = [_text(one, row[place]) for row in table.rows[:40]]
        wanted.append(max([44.0, text_width(one.name, bold=True) + 14, *(text_width(t) + 14 for t in texts)]))
    total = sum(wanted)
    if total <= room:
        return [w + (room - total) / len(wanted) for w in wanted]
    fair = room / len(wanted)
    over = sum(max(w - fair, 0) for w in wanted)
    spare = sum(max(fair - w, 0) for w in wanted)
    return [w if w <= fair else fair + (w - fair) * spare / over for w in wanted]
