"""Sweep points -> a page and a Markdown table: what kept the promise, Pareto fronts, quality along the axes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from loadtests.compare import Figure
from loadtests.page import wrap
from loadtests.pareto import Better, front
from loadtests.plots import Mark, line_chart, scatter_chart
from loadtests.sweep import SweepPoint, label_of
from loadtests.sweepplan import ENGINE, Scores

Reading = Callable[[SweepPoint], float | None]


@dataclass(frozen=True, slots=True)
class View:
    """Two figures to weigh against each other."""

    title: str
    x_text: str
    y_text: str
    x: Reading
    y: Reading
    x_better: Better = "lower"
    y_better: Better = "higher"


def _ms(measure: str, figure: str) -> Reading:
    def read(point: SweepPoint) -> float | None:
        seconds = point.latency_s(measure, figure)
        return None if seconds is None else seconds * 1e3

    return read


def _rate(name: str) -> Reading:
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
_LOAD = ("rate", "users")
_SHARE = "share of right answers"


def views(points: Sequence[SweepPoint], scores: Scores | None = None) -> tuple[View, ...]:
    """The views that these points have figures for; *scores* names the user's own quality."""
    if not any(_quality(point) is not None for point in points):
        return VIEWS
    text, better = (scores.name, scores.better) if scores else (_SHARE, "higher")
    latency = _ms("e2e_s", "p95")
    return (
        *VIEWS,
        View("Quality against latency", "P95 whole request, ms", text, latency, _quality, y_better=better),
    )


def _quality(point: SweepPoint) -> float | None:
    return None if point.quality is None else point.quality.value


def pareto(points: Sequence[SweepPoint], view: View) -> list[SweepPoint]:
    """Points on the front of *view*; those that told nothing, or failed too often to mean anything, are left out."""
    compared = [point for point in points if point.not_compared is None]
    return front(compared, view.x, view.y, first_better=view.x_better, second_better=view.y_better)


_COLUMNS = {
    "#": "---:",
    "setting": "---",
    "promise": "---",
    "TTFT ms": "---:",
    "request ms": "---:",
    "tokens/s": "---:",
    "errors": "---:",
    "quality": "---:",
    "front": "---",
}
"""Column -> how Markdown aligns it."""
_P95 = " (latencies: P95)"  # in the title, because a terminal has no room for it in two columns


def markdown(points: Sequence[SweepPoint], title: str, scores: Scores | None = None) -> str:
    """
    One row a point; ● kept the promise, ○ did not; F: on the front of the first view; –: not compared.

    Reasons stand below, because a terminal has no room for them in a row.
    """
    columns = _columns(points)
    table = [columns, [_COLUMNS[name] for name in columns], *_rows(points, columns, scores)]
    reasons = [
        f"- {number}, {point.label}: {why}" for number, point in enumerate(points, 1) if (why := _why(point))
    ]
    lines = [f"### {title}{_P95}", "", *(f"| {' | '.join(row)} |" for row in table), "", *reasons]
    return "\n".join([*lines, ""] if reasons else lines)


def html(points: Sequence[SweepPoint], title: str, scores: Scores | None = None) -> str:
    """The table, a chart a view and one of quality along each axis, in one self-contained page."""
    columns = _columns(points)
    rows = "".join(
        f"<tr><td>{number}</td><th>{escape(label)}</th>"
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in (*cells, _why(point)))}</tr>"
        for point, (number, label, *cells) in zip(points, _rows(points, columns, scores), strict=True)
    )
    head = "".join(f"<th>{name}</th>" for name in (*columns, "why"))
    note = (
        "Numbers in the charts are rows of this table. Filled: kept the promise of the gates in slo.yaml. Dashed: the Pareto front. Crossed out: not compared, "
        "because it told nothing or failed too often; a point whose P95 nobody knows, because more had no answer, is in the table alone. Whiskers: 95 % intervals (Wilson) over the questions asked."
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{note}</p>"
    charts = [_chart(points, view) for view in views(points, scores)]
    return wrap(title + _P95, table, [*charts, *_quality_charts(points, scores)])


def _columns(points: Sequence[SweepPoint]) -> list[str]:
    """All columns; quality only where a point has a figure of it."""
    return [name for name in _COLUMNS if name != "quality" or any(point.quality for point in points)]


def _rows(points: Sequence[SweepPoint], columns: Sequence[str], scores: Scores | None) -> list[list[str]]:
    on_front = pareto(points, VIEWS[0])
    rows = [
        {
            "#": str(number),
            "setting": point.label,
            "promise": f"{'●' if point.kept else '○'} {point.outcome}",
            **_cells(point, scores),
            "front": "F" if any(point is one for one in on_front) else "–" if point.not_compared else "",
        }
        for number, point in enumerate(points, 1)
    ]
    return [[row[name] for name in columns] for row in rows]


def _quality_charts(points: Sequence[SweepPoint], scores: Scores | None) -> list[str]:
    """Quality along every axis but the load's: a line where its values are numbers, else points beside each other."""
    known = [point for point in points if _quality(point) is not None]
    axes = dict.fromkeys(name for point in known for name in point.settings if name not in _LOAD)
    return [
        _quality_chart(known, axis, scores.name if scores else _SHARE)
        for axis in axes
        if len({point.settings.get(axis) for point in known}) > 1
    ]


def _quality_chart(points: Sequence[SweepPoint], axis: str, text: str) -> str:
    values = list(dict.fromkeys(point.settings[axis] for point in points))
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    series = list(dict.fromkeys(_rest(point, axis) for point in points))
    marks = []
    for point in points:
        value, figure, rest = point.settings[axis], point.quality, _rest(point, axis)
        assert figure is not None and figure.value is not None  # only such points come here
        at = float(value) if numeric else float(values.index(value))
        hint = f"{point.label}: {_shown(figure, percent=False)}"
        marks.append(
            Mark(
                at,
                figure.value,
                rest,
                hint,
                series.index(rest),
                hollow=not point.kept,
                crossed=point.many_errors,
                low=figure.low,
                high=figure.high,
            )
        )
    name = axis.removeprefix(ENGINE)
    names = [] if numeric else [str(value) for value in values]
    return line_chart(f"Quality against {name}", name, text, marks, names)


def _rest(point: SweepPoint, axis: str) -> str:
    """What a point's other settings are, so that those alike but for *axis* are one line."""
    others = {name: value for name, value in point.settings.items() if name != axis}
    return label_of(others) if others else ""


def _why(point: SweepPoint) -> str:
    """Why the point is on no front, and which promises it broke; empty where it kept them."""
    return "; ".join(filter(None, (_not_compared(point), *point.why)))


def _not_compared(point: SweepPoint) -> str:
    return f"not compared: {point.not_compared}" if point.not_compared else ""


def _chart(points: Sequence[SweepPoint], view: View) -> str:
    groups = list(dict.fromkeys(_group(point) for point in points))
    marks = {
        id(point): mark
        for number, point in enumerate(points, 1)
        if (mark := _mark(point, view, number, groups.index(_group(point)))) is not None
    }
    line = [marks[id(point)] for point in pareto(points, view) if id(point) in marks]
    return scatter_chart(view.title, view.x_text, view.y_text, list(marks.values()), line)


def _group(point: SweepPoint) -> str:
    """Settings that share a colour: all but the level of the load."""
    return " ".join(f"{name}={value}" for name, value in point.settings.items() if name not in _LOAD)


def _mark(point: SweepPoint, view: View, number: int, group: int) -> Mark | None:
    x, y = view.x(point), view.y(point)
    if x is None or y is None:
        return None
    hint = f"{point.label}: {x:.4g}, {y:.4g}"
    if point.not_compared:
        hint += f", {_not_compared(point)}"
    crossed = point.not_compared is not None
    return Mark(x, y, str(number), hint, group, hollow=not point.kept, crossed=crossed)


def _cells(point: SweepPoint, scores: Scores | None) -> dict[str, str]:
    figures = {
        "TTFT ms": _ms("ttft_s", "p95")(point),
        "request ms": _ms("e2e_s", "p95")(point),
        "tokens/s": point.summary["rates"]["output_tokens_per_s"],
    }
    errors = point.summary["error_ratio"]
    return {
        **{name: "–" if figure is None else f"{figure:.1f}" for name, figure in figures.items()},
        "errors": "–" if errors is None else f"{errors:.2%}",
        "quality": "–" if point.quality is None else _shown(point.quality, percent=scores is None),
    }


def _shown(figure: Figure, *, percent: bool) -> str:
    if figure.value is None:
        return "–"
    form = ".1%" if percent else ".4g"
    interval = "" if figure.low is None else f" [{figure.low:{form}}, {figure.high:{form}}]"
    return f"{figure.value:{form}}{interval}"
