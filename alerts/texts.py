"""Pieces of notification texts: links, and values looked up when an alert fires."""

from typing import Literal

from slo.names import dashboards, engine
from slo.spec import Spec

Page = Literal["slo", "engine", "stack", "drift", "rag", "network", "collector"]
_UIDS: dict[Page, str] = {
    "slo": dashboards.SLO_UID,
    "engine": dashboards.ENGINE_UID,
    "stack": dashboards.STACK_UID,
    "drift": dashboards.DRIFT_UID,
    "rag": dashboards.RAG_UID,
    "network": dashboards.RAG_UID,
    "collector": dashboards.COLLECTOR_UID,
}
_QUERIES: dict[Page, str] = {
    "stack": "",
    "network": "",
    "collector": "",
    "rag": "?var-service={{ $labels.service | urlquery }}",
}
_SERVICE_AND_MODEL = (
    "?var-service={{ $labels.service | urlquery }}"
    "{{ with $labels.model }}&var-model={{ . | urlquery }}{{ end }}"
)

WHO = "{{ $labels.service }} / {{ $labels.model }}"
"""Whose alert it is, as people say it."""

PROBE_REASON = (
    f"{{{{ with printf `{engine.PROBE_FAILURE}{{instance=%q}} == 1` $labels.instance | query }}}}"
    "{{ with first . }} ({{ .Labels.reason }}){{ end }}{{ end }}"
)
"""` (refused)`: why the last probe failed; empty where no probe says."""


def links(spec: Spec, alert: str, page: Page) -> dict[str, str]:
    """Return the runbook and dashboard links of an alert."""
    query = _QUERIES.get(page, _SERVICE_AND_MODEL)
    return {
        "runbook_url": f"{spec.links.runbook_base}/{alert}.md",
        "dashboard_url": f"{spec.links.dashboard_base}/d/{_UIDS[page]}{query}",
    }


def percent(ratio: float) -> str:
    """Return a ratio as people read it: 0.0005 -> "0.05 %"."""
    return f"{ratio * 100:.10g} %"


def span(seconds: float) -> str:
    """Return a duration in the largest unit that suits: 21600 -> "6 h", 90 -> "90 s"."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
