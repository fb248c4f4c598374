"""An XY chart panel -> one point a moment at which both of its series have a value; later ones are stronger."""

import math
from collections.abc import Sequence

from inferwatch.render import ticks
from inferwatch.render.canvas import Canvas, Line, Rect, Text
from inferwatch.render.fields import Track
from inferwatch.render.frame import HEAD, PAD, Plot, gutter, value_axis
from inferwatch.render.theme import SERIES
from inferwatch.render.units import show
from inferwatch.render.variables import Window

POINT = 5.0


def draw(canvas: Canvas, found: Sequence[Track], view: Window) -> None:
    """The first series along, the second up; fewer than two say what is missing."""
    pairs = _pairs(found)
    if not pairs:
        canvas.add(
            Text(canvas.width / 2, canvas.height / 2, "no moment has both values", "muted", 13, "middle")
        )
        return
    across, up = found[0].field, found[1].field
    right, high = max(x for _, x, _ in pairs) * 1.06 or 1.0, max(y for _, _, y in pairs) * 1.06 or 1.0
    marks = [
        (v, show(v, up.unit)) for v in ticks.linear(0, high, max(int((canvas.height - HEAD - 48) / 34), 2))
    ]
    left = gutter([text for _, text in marks])
    plot = Plot(left, HEAD + 4, canvas.width - PAD, canvas.height - 46, view, 0, high)
    value_axis(canvas, plot, marks)
    for value in ticks.linear(0, right, int((plot.right - plot.left) / 60)):
        x = plot.left + value / right * (plot.right - plot.left)
        canvas.add(Line(((x, plot.top), (x, plot.bottom)), "grid"))
        canvas.add(Text(x, plot.bottom + 14, show(value, across.unit), "muted", 10, "middle"))
    for number, (_, x, y) in enumerate(pairs, 1):
        at = plot.left + x / right * (plot.right - plot.left)
        hint = f"{across.name}: {show(x, across.unit)}, {up.name}: {show(y, up.unit)}"
        strength = 0.25 + 0.65 * number / len(pairs)
        canvas.add(
            Rect(
                at - POINT / 2, plot.y(y) - POINT / 2, POINT, POINT, SERIES[0], strength, POINT / 2, hint=hint
            )
        )
    canvas.add(
        Text(
            (plot.left + plot.right) / 2,
            canvas.height - 12,
            f"{across.name} → , {up.name} ↑",
            "muted",
            11,
            "middle",
        )
    )


def _pairs(found: Sequence[Track]) -> list[tuple[float, float, float]]:
    """(time, x, y) where both are numbers, oldest first."""
    if len(found) < 2:
        return []
    second = dict(found[1].points)
    return [
        (t, x, second[t])
        for t, x in found[0].points
        if t in second and math.isfinite(x) and math.isfinite(second[t])
    ]
