"""What the bands of the RAG page share: selectors, ordered rows, and links to traces in Jaeger."""

import json
from collections.abc import Iterable
from urllib.parse import quote

from dashboards.style import Json, ModernPanel
from slo.names import rag

SERVICE = 'service=~"$service"'
"""Matchers for recorded series and for the service's own metrics."""
SPANS = f'{rag.LABEL_SPAN_SERVICE}=~"$service"'
"""Matchers for span metrics."""
MODEL = 'model=~"$model"'
"""Matchers for what the engine's own spans say; they know no service."""
RATE = "$__rate_interval"
JAEGER_UID = "jaeger"

SOURCE_SPANS = "span metrics of the collector"
SOURCE_RULES = "recording rules over span metrics"
SOURCE_SERVICE = "recording rules over the RAG service's /metrics"


def of(metric: str, more: str = "", labels: str = SERVICE) -> str:
    """`metric{…}` with the page's variables, and *more* matchers in front."""
    return f"{metric}{{{more + ',' if more else ''}{labels}}}"


def rows(label: str, expressions: Iterable[tuple[str, str]]) -> str:
    """(name, expression of one series) in order -> one query whose rows sort in that order: "1 · name"."""
    return " or ".join(
        f'label_replace({expr}, "{label}", "{n} · {name}", "", "")'
        for n, (name, expr) in enumerate(expressions, 1)
    )


def traces_link(title: str, service: str, tags: str = "") -> Json:
    """
    A data link that searches Jaeger over the panel's time range.

    *service*, *tags* (logfmt, `rag.stage=retrieval`): may hold Grafana's `${…}`, filled in when it is clicked.
    """
    search = {
        "a": {
            "datasource": JAEGER_UID,
            "queries": [
                {
                    "refId": "A",
                    "datasource": {"type": "jaeger", "uid": JAEGER_UID},
                    "queryType": "search",
                    "service": service,
                    **({"tags": tags} if tags else {}),
                }
            ],
            "range": {"from": "${__from}", "to": "${__to}"},
        }
    }
    panes = quote(json.dumps(search, separators=(",", ":")), safe="${}")
    return {"title": title, "url": f"/explore?schemaVersion=1&panes={panes}", "targetBlank": True}


def linked(panel: ModernPanel, *links: Json) -> ModernPanel:
    """The panel with data links on every point of it."""
    panel.field_config["defaults"]["links"] = list(links)
    return panel
