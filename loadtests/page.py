"""Compared columns and sweep points -> a Markdown table for a pull request, and one HTML page with plots."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from inferwatch.render.theme import DARK, LIGHT
from loadtests.compare import Column, Figure, differs
from loadtests.plots import distribution_chart
from loadtests.verdict import Verdict

Rows = list[tuple[str, list[str]]]
_CHARTS = (
    ("ttft_s", "Time to first token"),
    ("e2e_s", "Whole request"),
    ("inter_chunk_gap_s", "Inter-chunk gap"),
)


def rows(columns: Sequence[Column]) -> Rows:
    """(figure, a cell a column): value, 95 % interval, and a mark where it differs from the first column's."""
    found: Rows = [("requests", [f"{one.requests} in {one.rounds} rounds" for one in columns])]
    for name in columns[0].figures:
        first = columns[0].figures[name]
        cells = []
        for one in columns:
            figure = one.figures[name]
            mark = " ≠" if one is not columns[0] and differs(first, figure) else ""
            cells.append(_cell(name, figure) + mark)
        found.append((_label(name), cells))
    return found


def markdown(columns: Sequence[Column], title: str) -> str:
    """A table that reads well in a pull request; ≠ marks 95 % intervals apart from the first column's."""
    lines = [f"### {title}", "", "| | " + " | ".join(one.name for one in columns) + " |"]
    lines.append("|---|" + "---:|" * len(columns))
    lines += [f"| {label} | " + " | ".join(cells) + " |" for label, cells in rows(columns)]
    lines += ["", "Brackets: 95 % interval. ≠: the interval does not meet that of the first column.", ""]
    return "\n".join(lines)


def verdict_markdown(verdict: Verdict) -> str:
    """A gate's verdict as a table for a pull request."""
    outcome = verdict.code.name.lower().replace("_", " ")
    lines = [
        f"### Load gate: {outcome} (exit {int(verdict.code)})",
        "",
        "| gate | outcome | what was measured |",
    ]
    lines.append("|---|---|---|")
    for check in verdict.checks:
        name = check.outcome.name.lower().replace("_", " ")
        lines.append(f"| {check.name} | {name} | {check.detail} |")
    return "\n".join([*lines, ""])


def html(columns: Sequence[Column], title: str) -> str:
    """The same table with a distribution chart for each latency, in one self-contained page."""
    charts = [
        distribution_chart(text, [(one.name, one.samples[measure]) for one in columns])
        for measure, text in _CHARTS
    ]
    head = "".join(f"<th>{escape(one.name)}</th>" for one in columns)
    body = "".join(
        f"<tr><th>{escape(label)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        for label, cells in rows(columns)
    )
    note = "Brackets: 95 % interval. ≠: the interval does not meet that of the first column."
    table = f"<table><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table><p>{note}</p>"
    return wrap(title, table, charts)


def wrap(title: str, body: str, charts: Sequence[str]) -> str:
    """A page with its own colours, dark or light as the reader's system is; no script, nothing fetched."""
    figures = "".join(f"<figure>{chart}</figure>" for chart in charts)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_style()}</style></head><body><h1>{escape(title)}</h1>{body}<main>{figures}</main></body></html>\n"
    )


def write(path: Path, text: str) -> None:
    """Write a page or table, making its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _style() -> str:
    dark = "".join(f"--{name}:{colour};" for name, colour in DARK.items())
    light = "".join(f"--{name}:{colour};" for name, colour in LIGHT.items())
    return (
        f":root{{{dark}}}@media(prefers-color-scheme:light){{:root{{{light}}}}}"
        "body{background:var(--page);color:var(--text);font:14px/1.5 system-ui,sans-serif;margin:2rem auto;"
        "max-width:1180px;padding:0 1rem}main{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,"
        "minmax(440px,1fr))}figure{margin:0}table{border-collapse:collapse;margin:1rem 0}"
        "th,td{padding:.3rem .8rem;border-bottom:1px solid var(--border);text-align:right}"
        "tbody th{text-align:left;font-weight:400}p{color:var(--muted)}"
    )


def _label(name: str) -> str:
    if name.endswith("_per_s"):
        return name.removesuffix("_per_s").replace("_", " ") + "/s"
    return name.replace("_s ", " ").replace("_", " ")


def _cell(name: str, figure: Figure) -> str:
    if figure.value is None:
        return "–"
    scale, unit, digits = 1.0, "", 1
    if "_s P" in name:
        scale, unit, digits = 1e3, " ms", 2
    elif name == "error_ratio":
        scale, unit, digits = 100.0, " %", 2
    text = f"{figure.value * scale:.{digits}f}{unit}"
    if figure.low is None or figure.high is None:
        return text
    return f"{text} [{figure.low * scale:.{digits}f}, {figure.high * scale:.{digits}f}]"
