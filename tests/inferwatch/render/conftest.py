"""A Prometheus that gives what a test says, and the smallest dashboards there can be."""

from collections.abc import Mapping
from typing import Any

import pytest

from inferwatch.promapi import PromError, Sample, Series


class ToldPrometheus:
    """Answers a query whose text holds a key with that key's series; everything else is empty."""

    def __init__(self, answers: Mapping[str, list[Any]]) -> None:
        self.answers, self.asked = answers, list[str]()

    def _found(self, expr: str) -> list[Any]:
        self.asked.append(expr)
        for key, found in self.answers.items():
            if key in expr:
                if found == ["error"]:
                    raise PromError(f"bad query {expr}")
                return found
        return []

    def query_range(self, expr: str, *, start: float, end: float, step_seconds: float) -> list[Series]:
        """Only series."""
        del start, end, step_seconds
        return [one for one in self._found(expr) if isinstance(one, Series)]

    def query(self, expr: str, *, at: float | None = None) -> list[Sample]:
        """Only samples."""
        del at
        return [one for one in self._found(expr) if isinstance(one, Sample)]


@pytest.fixture
def told() -> type[ToldPrometheus]:
    """The class, to be given answers."""
    return ToldPrometheus


def make_panel(kind: str, exprs: list[str], **more: Any) -> dict[str, Any]:
    """A panel of *kind* with one target an expression; *more* replaces or adds keys."""
    instant = kind == "table"
    panel: dict[str, Any] = {
        "id": 1,
        "type": kind,
        "title": "Panel",
        "description": "Says. Unit: a count. Source: tests.",
        "gridPos": {"x": 0, "y": 0, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": "short", "thresholds": {"steps": [{"value": None, "color": "#009E73"}]},
                                     "mappings": []}, "overrides": []},
        "options": {"yAxis": {"unit": "s"}, "color": {"scheme": "Viridis", "exponent": 0.5}},
        "targets": [
            {"refId": "ABCDEF"[i], "expr": expr, "legendFormat": "__auto", "instant": instant,
             "format": {"heatmap": "heatmap", "table": "table"}.get(kind, "time_series")}
            for i, expr in enumerate(exprs)
        ],
    }  # fmt: skip
    panel["fieldConfig"]["defaults"].update(more.pop("defaults", {}))
    return {**panel, **more}


def make_dashboard(
    *panels: dict[str, Any], annotations: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """A dashboard with a service variable."""
    return {
        "uid": "d",
        "title": "Dashboard",
        "description": "",
        "panels": list(panels),
        "annotations": {"list": annotations or []},
        "templating": {
            "list": [
                {"type": "datasource", "name": "datasource"},
                {"type": "query", "name": "service", "allValue": ".*"},
            ]
        },
    }


@pytest.fixture
def panel() -> Any:
    """make_panel."""
    return make_panel


@pytest.fixture
def dashboard() -> Any:
    """make_dashboard."""
    return make_dashboard
