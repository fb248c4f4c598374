"""A dashboard and a Prometheus -> the answers to all of its queries, asked a few at a time."""

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from inferwatch.promapi import PromError, Prometheus, Sample, Series
from inferwatch.render.theme import settled
from inferwatch.render.variables import VariableError, Window, fill_in

Json = Mapping[str, Any]
AT_ONCE = 4
_LABEL_VALUES = re.compile(r"label_values\((.+),\s*(\w+)\)")
MOST_MARKS = 40


@dataclass(frozen=True)
class Answer:
    """What one query gave: series over the range, or samples at its end; *error* says why there is nothing."""

    ref_id: str
    legend: str
    format: str
    series: tuple[Series, ...] = ()
    samples: tuple[Sample, ...] = ()
    instant: bool = False
    error: str = ""

    @property
    def empty(self) -> bool:
        """Whether the query gave nothing to draw."""
        return not self.series and not self.samples


@dataclass(frozen=True)
class Event:
    """An annotation: one moment with a name and a colour."""

    at: float
    name: str
    colour: str


def answers(
    dashboard: Json, prometheus: Prometheus, values: Mapping[str, str], view: Window
) -> dict[int, list[Answer]]:
    """Panel id -> its answers, in the order of the panel's targets."""
    panels = [p for p in dashboard["panels"] if p["type"] != "row"]
    jobs = [(p["id"], target) for p in panels for target in p["targets"]]
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        given = list(pool.map(lambda job: _ask(job[1], prometheus, values, view), jobs))
    found: dict[int, list[Answer]] = {p["id"]: [] for p in panels}
    for (panel_id, _), answer in zip(jobs, given, strict=True):
        found[panel_id].append(answer)
    return found


def _ask(target: Json, prometheus: Prometheus, values: Mapping[str, str], view: Window) -> Answer:
    about = {"ref_id": target["refId"], "legend": target["legendFormat"], "format": target["format"]}
    try:
        expr = fill_in(target["expr"], values, view)
        if target["instant"]:
            return Answer(**about, samples=tuple(prometheus.query(expr, at=view.end)), instant=True)
        series = prometheus.query_range(expr, start=view.start, end=view.end, step_seconds=view.step_seconds)
        return Answer(**about, series=tuple(series))
    except (PromError, VariableError) as error:
        return Answer(**about, error=str(error))


def events(dashboard: Json, prometheus: Prometheus, values: Mapping[str, str], view: Window) -> list[Event]:
    """Where each annotation's query begins to have samples; those too near to be told apart are one.

    Raises PromError when Prometheus cannot be asked.
    """
    apart = (view.end - view.start) / MOST_MARKS
    found: list[Event] = []
    for one in dashboard["annotations"]["list"]:
        expr = fill_in(one["expr"], values, view)
        series = prometheus.query_range(expr, start=view.start, end=view.end, step_seconds=view.step_seconds)
        last = float("-inf")
        for at in sorted({t for s in series for t in _begins(s, view.step_seconds)}):
            if at - last >= apart:
                found.append(Event(at, one["name"], settled(one["iconColor"])))
                last = at
    return sorted(found, key=lambda event: event.at)


def first_values(dashboard: Json, prometheus: Prometheus) -> dict[str, list[str]]:
    """A value for each variable that has no All and none picked: its first, as Grafana would choose.

    Raises PromError when Prometheus cannot be asked.
    """
    found: dict[str, list[str]] = {}
    for one in dashboard["templating"]["list"]:
        if one["type"] != "query" or one.get("includeAll") or one.get("allValue"):
            continue
        current = (one.get("current") or {}).get("value")
        query = one.get("query")
        text = query.get("query", "") if isinstance(query, dict) else str(query or "")
        asked = _LABEL_VALUES.fullmatch(text.strip())
        if isinstance(current, str) and current and not current.startswith("$"):
            found[one["name"]] = [current]
        elif asked:
            values = sorted({s.get(asked[2], "") for s in prometheus.series([asked[1]])} - {""})
            found |= {one["name"]: values[:1]} if values else {}
    return found


def _begins(series: Series, step_seconds: int) -> list[float]:
    times = [t for t, _ in series.points]
    return [t for i, t in enumerate(times) if i == 0 or t - times[i - 1] > 1.5 * step_seconds]
