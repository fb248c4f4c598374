"""Sweep points -> a page and a Markdown table: what kept the promise, and the Pareto front of two figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from loadtests.page import wrap
from loadtests.pareto import Better, front
from loadtests.plots import Mark, scatter_chart
from loadtests.sweep import SweepPoint

Figure = Callable[[SweepPoint], float | None]


@dataclass(frozen=True, slots=True)
class View:
    """Two figures to weigh against each other."""

    title: str
    x_text: str
    y_text: str
    x: Figure
    y: Figure
    x_better: Better = "lower"
    y_better: Better = "higher"


def _ms(measure: str, figure: str) -> Figure:
    def read(point: SweepPoint) -> float | None:
        seconds = point.latency_s(measure, figure)
        return None if seconds is None else seconds * 1e3

    return read


def _rate(name: str) -> Figure:
    return lambda point: point.summary["rates"][name]


VIEWS = (
    View(
        "Time to first token against throughput",
        "P95 time to first token, ms",
        "output tokens/s",
        _ms("ttft_s", "p95"),
        _rate("output_tokens_per_s"),
    ),
    View(
        "Whole request against throughput",
        "P95 whole request, ms",
        "output tokens/s",
        _ms("e2e_s", "p95"),
        _rate("output_tokens_per_s"),
    ),
)
QUALITY_VIEW = View(
    "Quality against latency",
    "P95 whole request, ms",
    "share of right answers",
    _ms("e2e_s", "p95"),
    lambda p: p.quality,
)


def views(points: Sequence[SweepPoint]) -> tuple[View, ...]:
    """The views that these points have figures for."""
    return (*VIEWS, QUALITY_VIEW) if any(point.quality is not None for point in points) else VIEWS


def pareto(points: Sequence[SweepPoint], view: View) -> list[SweepPoint]:
    """Points on the front of *view*; those that told nothing, or failed too often to mean anything, are left out."""
    compared = [point for point in points if point.not_compared is None]
    return front(compared, view.x, view.y, first_better=view.x_better, second_better=view.y_better)


_HEAD = (
    "setting",
    "promise",
    "P95 TTFT ms",
    "P95 request ms",
    "tokens/s",
    "errors",
    "quality",
    "front",
    "why",
)


def markdown(points: Sequence[SweepPoint], title: str) -> str:
    """One row a point; ● kept the promise, ○ did not; F: on the front of the first view."""
    lines = [
        f"### {title}",
        "",
        "| " + " | ".join(_HEAD) + " |",
        "|---|---|---:|---:|---:|---:|---:|---|---|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(points)]
    return "\n".join([*lines, ""])


def html(points: Sequence[SweepPoint], title: str) -> str:
    """The table and a chart a view, in one self-contained page."""
    rows = "".join(
        f"<tr><th>{escape(label)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for label, *cells in _rows(points)
    )
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    note = (
        "Filled: kept the promise of the gates in slo.yaml. Dashed: the Pareto front. Crossed out: not compared, "
        "because it told nothing or failed too often."
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{note}</p>"
    return wrap(title, table, [_chart(points, view) for view in views(points)])


def _rows(points: Sequence[SweepPoint]) -> list[list[str]]:
    on_front = pareto(points, VIEWS[0])
    return [
        [
            point.label,
            f"{'●' if point.kept else '○'} {point.outcome}",
            *_cells(point),
            "F" if any(point is one for one in on_front) else _not_compared(point),
            "; ".join(point.why),
        ]
        for point in points
    ]


def _not_compared(point: SweepPoint) -> str:
    return f"not compared: {point.not_compared}" if point.not_compared else ""


def _chart(points: Sequence[SweepPoint], view: View) -> str:
    groups = list(dict.fromkeys(_group(point) for point in points))
    marks = {
        id(point): mark
        for point in points
        if (mark := _mark(point, view, groups.index(_group(point)))) is not None
    }
    line = [marks[id(point)] for point in pareto(points, view) if id(point) in marks]
    return scatter_chart(view.title, view.x_text, view.y_text, list(marks.values()), line)


def _group(point: SweepPoint) -> str:
    """Settings that share a colour: all but the level of the load."""
    return " ".join(
        f"{name}={value}" for name, value in point.settings.items() if name not in ("rate", "users")
    )


def _mark(point: SweepPoint, view: View, group: int) -> Mark | None:
    x, y = view.x(point), view.y(point)
    if x is None or y is None:
        return None
    hint = f"{point.label}: {x:.4g}, {y:.4g}"
    if point.not_compared:
        hint += f", {_not_compared(point)}"
    crossed = point.not_compared is not None
    return Mark(x, y, point.label, hint, group, hollow=not point.kept, crossed=crossed)


def _cells(point: SweepPoint) -> list[str]:
    figures = [
        _ms("ttft_s", "p95")(point),
        _ms("e2e_s", "p95")(point),
        point.summary["rates"]["output_tokens_per_s"],
    ]
    errors, quality = point.summary["error_ratio"], point.quality
    shown = ["–" if figure is None else f"{figure:.1f}" for figure in figures]
    shown.append("–" if errors is None else f"{errors:.2%}")
    shown.append("–" if quality is None else f"{quality:.1%}")
    return shown
