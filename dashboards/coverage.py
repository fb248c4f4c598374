"""Dashboards, a running Prometheus and what its targets serve -> which queries have data, and what nobody shows.

Metric names are read by Prometheus' own parser from the queries, from the pages that its targets serve
right now, and from its recording rules: never from our constants.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import urllib3

from inferwatch.promapi import PromError, Prometheus, Sample, Series, Target
from inferwatch.render.fetch import Answer, answers
from inferwatch.render.fields import series_name
from inferwatch.render.variables import Window, chosen, fill_in

Json = Mapping[str, Any]

OURS = re.compile(r"^(?:llm_|inferwatch_|rag_)")
_NAMED = re.compile(rb"^(?:# TYPE )?([a-zA-Z_:][a-zA-Z0-9_:]*)[{ ]", re.MULTILINE)
_OF_A_VARIABLE = re.compile(r"label_values\((.+),\s*\w+\)")
_OF_PROMETHEUS = {"ALERTS", "ALERTS_FOR_STATE", "up"}
_OF_A_SCRAPE = re.compile(r"^scrape_(?:duration_seconds|samples_\w+|series_added)$")
_SUFFIX = re.compile(r"_(?:bucket|sum|count|created)$")
RANGES = {"percentunit": (-1e9, 1.0 + 1e-6), "s": (0.0, 1e7), "bytes": (0.0, 1e15), "reqps": (0.0, 1e7)}
"""Grafana unit -> what values of it can be at all; an overspent budget is a negative ratio."""


@dataclass
class Report:
    """What was found; *faults* are what must be mended, the rest is told."""

    dashboards: int = 0
    panels: int = 0
    heatmaps: int = 0
    queries: int = 0
    with_data: int = 0
    without_data: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    uncovered: list[str] = field(default_factory=list)
    not_examined: list[str] = field(default_factory=list)


def examine(
    dashboards: Sequence[Json], prometheus: Prometheus, view: Window, needs: Mapping[str, str] | None = None,
    may_be_missing: Mapping[str, str] | None = None,
) -> Report:  # fmt: skip
    """Run every query over *view* and hold it against what is exported and recorded now.

    *needs*: uid -> a metric without which that page is not examined (no GPU here), which the report says.
    *may_be_missing*: metric -> when it is rightly not there, which the report says too.
    Raises PromError when Prometheus, or a page that a target serves, cannot be read.
    """
    report = Report(dashboards=len(dashboards))
    served = exported(prometheus.targets())
    recorded = {r.name for g in prometheus.rules() for r in g.rules if r.kind == "recording"}
    queried: set[str] = set()
    for board in dashboards:
        panels = [p for p in board["panels"] if p["type"] != "row"]
        report.panels += len(panels)
        report.heatmaps += sum(p["type"] == "heatmap" or _is_matrix(p) for p in panels)
        needed = (needs or {}).get(board["uid"])
        if needed and needed not in served:
            report.not_examined.append(f"{board['uid']} needs {needed}, which no target exports")
            continue
        values = chosen(board, {})
        excused: set[str] = set()
        for where, expr in _expressions(board):
            try:
                names = metric_names(prometheus, fill_in(expr, values, view))
            except PromError as error:
                report.faults.append(f"{board['uid']}: {where}: {error}")
                continue
            queried |= names
            for name in sorted(names - served - recorded - _OF_PROMETHEUS):
                if when := (may_be_missing or {}).get(name):
                    excused.add(expr)
                    report.not_examined.append(f"{board['uid']}: {where}: no {name} {when}")
                elif not _OF_A_SCRAPE.match(name):
                    report.faults.append(f"{board['uid']}: {where}: nobody exports {name}")
        given = answers(board, prometheus, values, view)
        for panel in panels:
            _judge(report, board, panel, given[panel["id"]], excused)
    shown = {_SUFFIX.sub("", name) for name in queried}
    judged = {_SUFFIX.sub("", n) for n in _in_rules(prometheus)}
    ours = {_SUFFIX.sub("", name) for name in served if OURS.match(name)}
    report.uncovered = sorted(ours - shown - judged)
    return report


def _is_matrix(panel: Json) -> bool:
    return any(t["id"] == "groupingToMatrix" for t in panel.get("transformations", ()))


def _expressions(board: Json) -> Iterator[tuple[str, str]]:
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for one in board["annotations"]["list"]:
        yield f"annotation {one['name']}", one["expr"]
    for one in board["templating"]["list"]:
        found = _OF_A_VARIABLE.fullmatch(one["query"]["query"]) if one["type"] == "query" else None
        if found:
            yield f"variable {one['name']}", found[1]


def metric_names(prometheus: Prometheus, expr: str) -> set[str]:
    """Names that a query selects, as Prometheus' own parser sees them.

    Raises PromError when it is no PromQL.
    """
    answer = prometheus.json("GET", "/api/v1/parse_query", [("query", expr)])
    if answer.get("status") != "success":
        raise PromError(f"Prometheus cannot parse {expr!r}: {answer.get('error', answer)}")
    return set(_selectors(answer["data"]))


def _selectors(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") in ("vectorSelector", "matrixSelector") and node.get("name"):
            yield node["name"]
        for part in node.values():
            yield from _selectors(part)
    elif isinstance(node, list):
        for part in node:
            yield from _selectors(part)


def _in_rules(prometheus: Prometheus) -> set[str]:
    """Names that recording and alerting rules read: an alert shows a metric too."""
    exprs = {r.query for g in prometheus.rules() for r in g.rules}
    return {name for expr in exprs for name in metric_names(prometheus, expr)}


def exported(targets: Sequence[Target]) -> set[str]:
    """Names on the pages that *targets* serve right now, a family without samples included.

    A target that is down is passed over.

    Raises PromError when none can be read.
    """
    pool = urllib3.PoolManager(timeout=urllib3.Timeout(10.0), retries=False)
    names: set[str] = set()
    read = 0
    for target in targets:
        try:
            answer = pool.request("GET", target.scrape_url)
        except urllib3.exceptions.HTTPError:
            continue
        if answer.status == 200:
            read += 1
            names |= {name.decode() for name in _NAMED.findall(answer.data) if not name.endswith(b"_created")}
    if not read:
        raise PromError("no target of this Prometheus could be read; start the stack and try again")
    return names


def _judge(report: Report, board: Json, panel: Json, given: Sequence[Answer], excused: Set[str]) -> None:
    """Count the panel's queries and hold what they gave against its unit and legend.

    *excused*: expressions of which a metric is rightly not there; that they give nothing is told already.
    """
    defaults = panel["fieldConfig"]["defaults"]
    low, high = RANGES.get(defaults.get("unit", ""), (-math.inf, math.inf))
    high = max(high, defaults.get("max", high))
    for target, answer in zip(panel["targets"], given, strict=True):
        where = f"{board['uid']}: {panel['title']} ({target['refId']})"
        report.queries += 1
        if answer.error:
            report.faults.append(f"{where}: {answer.error}")
            continue
        labelled = [*((s.labels, [v for _, v in s.points]) for s in answer.series),
                    *((s.labels, [s.value]) for s in answer.samples)]  # fmt: skip
        values = [v for _, found in labelled for v in found if math.isfinite(v)]
        if not values:
            if target["expr"] not in excused:
                report.without_data.append(where)
            continue
        report.with_data += 1
        if not low <= min(values) <= max(values) <= high and not _is_matrix(panel):
            report.faults.append(
                f"{where}: values {min(values):g} to {max(values):g} are no {defaults['unit']}"
            )
        if answer.format == "time_series":
            report.faults += [f"{where}: {fault}" for fault in _legends(answer)]


def _legends(answer: Answer) -> list[str]:
    """Why a reader could not tell the series apart by their legends."""
    given: list[Series | Sample] = [*answer.series, *answer.samples]
    names = [series_name(answer, one.labels) for one in given]
    faults = [f"the legend {answer.legend!r} is empty for {names.count('')} series"] if "" in names else []
    twice = sorted({name for name in names if name and names.count(name) > 1})
    return faults + [f"{names.count(name)} series have the legend {name!r}" for name in twice]
