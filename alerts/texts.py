"""Pieces of notification texts: links, and values looked up when an alert fires."""

from typing import Literal

from slo.names import dashboards, engine, labels
from slo.spec import Spec

Page = Literal["slo", "engine", "stack", "drift", "joint", "rag", "network", "collector", "gpu"]
_SERVICE = "?var-service={{ $labels.service | urlquery }}"
# A model that nobody knows by name, or several at once, is none that a page could be narrowed to.
_MODEL = (
    "{{ with $labels.model }}"
    f"{{{{ if and (ne . `{labels.MODEL_UNKNOWN}`) (ne . `{labels.MODEL_SEVERAL}`) }}}}"
    "&var-model={{ . | urlquery }}{{ end }}{{ end }}"
)
_INSTANCE = "{{ with $labels.instance }}&var-instance={{ . | urlquery }}{{ end }}"
_PAGES: dict[Page, tuple[str, str]] = {
    "slo": (dashboards.SLO_UID, _SERVICE + _MODEL),
    "engine": (dashboards.ENGINE_UID, _SERVICE + _MODEL + _INSTANCE),
    "stack": (dashboards.STACK_UID, ""),
    "drift": (dashboards.DRIFT_UID, _SERVICE + _MODEL),
    # The page's models are those of embeddings, the alert's is that of an engine.
    "joint": (dashboards.DRIFT_UID, _SERVICE),
    "rag": (dashboards.RAG_UID, _SERVICE),
    "network": (dashboards.RAG_UID, ""),
    "collector": (dashboards.COLLECTOR_UID, ""),
    # With another exporter of GPUs the labels of an alert name nothing that the page has.
    "gpu": (dashboards.GPU_UID, ""),
}
"""Where a person looks: the page's uid, and what it is narrowed to by the alert's labels."""

WHO = "{{ $labels.service }} / {{ $labels.model }}"
"""Whose alert it is, as people say it."""

PROBE_REASON = (
    f"{{{{ with printf `{engine.PROBE_FAILURE}{{instance=%q}} == 1` $labels.instance | query }}}}"
    "{{ with first . }} ({{ .Labels.reason }}){{ end }}{{ end }}"
)
"""` (refused)`: why the last probe failed; empty where no probe says."""


def links(spec: Spec, alert: str, page: Page) -> dict[str, str]:
    """Return the runbook and dashboard links of an alert."""
    uid, query = _PAGES[page]
    return {
        "runbook_url": f"{spec.links.runbook_base}/{alert}.md",
        "dashboard_url": f"{spec.links.dashboard_base}/d/{uid}{query}",
    }


def looked_up(expression: str, *of: str, shown: str = ".Value | humanize") -> str:
    """Return a template of an expression's first value; *of*: the alert's labels that fill its `%q`."""
    asked = "".join(f" $labels.{label}" for label in of)
    return (
        f"{{{{ with printf `{expression}`{asked} | query }}}}{{{{ with first . }}}}{{{{ {shown} }}}}{{{{ end }}}}"
        "{{ else }}an unknown number{{ end }}"
    )


def percent(ratio: float) -> str:
    """Return a ratio as people read it: 0.0005 -> "0.05 %"."""
    return f"{ratio * 100:.10g} %"


def span(seconds: float) -> str:
    """Return a duration in the largest unit that suits: 21600 -> "6 h", 90 -> "90 s"."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size or seconds == size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
