"""A dashboard's JSON and a Prometheus -> a page: every panel drawn where Grafana would put it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferwatch.promapi import Prometheus
from inferwatch.render import cells, grid, lines, scatter, spans, tiles
from inferwatch.render.canvas import Canvas, Rect, Text, fit
from inferwatch.render.complete import complete
from inferwatch.render.fetch import Answer, Event, answers, events, first_values
from inferwatch.render.fields import FieldError, tracks
from inferwatch.render.frame import PAD
from inferwatch.render.frames import TransformError
from inferwatch.render.variables import Window, chosen

Json = Mapping[str, Any]
CELL_WIDTH, CELL_HEIGHT, GAP = 68.0, 34.0, 8.0
COLUMNS = 24


@dataclass(frozen=True)
class Placed:
    """One drawn panel at *x*, *y* of its page; *state* is data, empty or error."""

    id: int
    title: str
    description: str
    x: float
    y: float
    canvas: Canvas
    state: str


@dataclass(frozen=True)
class Page:
    """A drawn dashboard; width and height in pixels."""

    uid: str
    title: str
    description: str
    view: Window
    selection: Mapping[str, str]
    panels: tuple[Placed, ...]
    width: float
    height: float


def draw(
    dashboard: Json, prometheus: Prometheus, view: Window, selection: Mapping[str, Sequence[str]] | None = None
) -> Page:  # fmt: skip
    """Ask *prometheus* all that the dashboard asks, and draw the answers.

    *selection* picks values of variables ({"service": ["llm"]}); a variable left out is All. A query that
    fails is shown in its panel. Raises PromError when Prometheus cannot be reached for the annotations.
    """
    dashboard = complete(dashboard)
    values = chosen(dashboard, {**first_values(dashboard, prometheus), **(selection or {})})
    given = answers(dashboard, prometheus, values, view)
    marks = events(dashboard, prometheus, values, view)
    placed = tuple(_placed(panel, given.get(panel["id"], []), view, marks) for panel in dashboard["panels"])
    height = max(p.y + p.canvas.height for p in placed) + GAP
    return Page(
        dashboard["uid"], dashboard["title"], dashboard.get("description", ""), view, values, placed,
        COLUMNS * CELL_WIDTH + GAP, height,
    )  # fmt: skip


def draw_panel(
    dashboard: Json, panel_id: int, prometheus: Prometheus, view: Window,
    selection: Mapping[str, Sequence[str]] | None = None,
) -> Placed:  # fmt: skip
    """One panel alone, for a notification or a report: only its own queries are asked.

    Raises ValueError when the dashboard has no such panel, else as draw().
    """
    found = [p for p in dashboard["panels"] if p["id"] == panel_id and p["type"] != "row"]
    if not found:
        ids = ", ".join(str(p["id"]) for p in dashboard["panels"] if p["type"] != "row")
        raise ValueError(f"{dashboard['uid']} has no panel {panel_id}; it has {ids}")
    (placed,) = draw({**dashboard, "panels": found}, prometheus, view, selection).panels
    return placed


def _placed(panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> Placed:
    at = panel["gridPos"]
    canvas = Canvas(at["w"] * CELL_WIDTH - GAP, at["h"] * CELL_HEIGHT - GAP)
    state = "data"
    if panel["type"] == "row":
        canvas.add(Text(2, canvas.height - 6, panel["title"], "text", 13, bold=True))
    else:
        state = _panel(canvas, panel, given, view, marks)
    x, y = GAP + at["x"] * CELL_WIDTH, GAP + at["y"] * CELL_HEIGHT
    return Placed(panel["id"], panel["title"], panel.get("description", ""), x, y, canvas, state)


def _panel(canvas: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> str:
    canvas.add(
        Rect(0, 0, canvas.width, canvas.height, "panel", radius=4, border="border"),
        Text(PAD, 20, fit(panel["title"], canvas.width - 2 * PAD, 12.5, True), "text", 12.5, bold=True),
    )
    if panel["type"] not in _DRAW:
        _say(canvas, f"the renderer does not draw {panel['type']} panels", "muted")
        return "error"
    faults = [answer.error for answer in given if answer.error]
    if all(answer.empty for answer in given):
        if faults:
            _say(canvas, f"query failed: {faults[0]}", "error")
            return "error"
        _say(canvas, str(panel["fieldConfig"]["defaults"].get("noValue", "no data")), "muted")
        return "empty"
    try:
        _DRAW[panel["type"]](canvas, panel, given, view, marks)
    except (TransformError, FieldError, cells.BucketError) as error:
        _say(canvas, str(error), "error")
        return "error"
    if faults:
        canvas.add(Text(canvas.width - PAD, 20, "a query failed", "error", 10, "end", hint=faults[0]))
        return "error"
    return "data"


def _say(canvas: Canvas, text: str, colour: str) -> None:
    shown = fit(text, canvas.width - 2 * PAD, 13)
    canvas.add(Text(canvas.width / 2, canvas.height / 2 + 8, shown, colour, 13, "middle", hint=text))


def _lines(c: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> None:
    lines.draw(c, panel, tracks(panel, given), view, marks)


def _spans(c: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> None:
    spans.draw(c, panel, tracks(panel, given), view, marks)


def _stat(c: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> None:
    del marks
    tiles.draw_stat(c, panel, tracks(panel, given), view)


def _bars(c: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> None:
    del view, marks
    tiles.draw_bars(c, panel, tracks(panel, given))


def _table(c: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> None:
    del view, marks
    grid.draw(c, panel, given)


def _scatter(c: Canvas, panel: Json, given: Sequence[Answer], view: Window, marks: Sequence[Event]) -> None:
    del marks
    scatter.draw(c, tracks(panel, given), view)


_DRAW = {
    "timeseries": _lines,
    "heatmap": cells.draw,
    "stat": _stat,
    "bargauge": _bars,
    "table": _table,
    "state-timeline": _spans,
    "xychart": _scatter,
}
"""Panel type -> what draws it."""
