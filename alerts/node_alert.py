"""One alert of a node: whose it is in words, and the label and the links that all of them have."""

from alerts.promql import promql
from alerts.rule import Alert, Severity
from alerts.texts import links
from slo.names import labels
from slo.spec import Spec

NODE = {labels.SERVICE: "node"}
CARD = "GPU {{ $labels.gpu }} ({{ $labels.gpu_model }}, {{ $labels.uuid }}) of {{ $labels.instance }}"
CORE = "engine {{ $labels.instance }} (rank {{ $labels.dp_rank }}) on {{ $labels.node }}"
TENANT = "{{ $labels.tenant }} on {{ $labels.node }}"
SHARE = "{{ $value | humanizePercentage }}"


def node_alert(
    spec: Spec, name: str, expr: str, severity: Severity, summary: str, description: str, for_seconds: int = 0
) -> Alert:
    """An alert of the node, linked to its runbook and the GPU page."""
    return Alert(
        name,
        promql(expr),
        severity,
        summary,
        description,
        for_seconds=for_seconds,
        labels=NODE,
        links=links(spec, name, "gpu"),
    )
