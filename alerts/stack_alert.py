"""One alert about Inferwatch's own parts: the label and the links that all of them have."""

from alerts.promql import promql
from alerts.rule import Alert, Severity
from alerts.texts import Page, links
from slo.names import labels
from slo.spec import Spec

STACK = {labels.SERVICE: "inferwatch"}


def stack_alert(
    spec: Spec,
    name: str,
    expr: str,
    severity: Severity,
    summary: str,
    description: str,
    for_seconds: int = 0,
    page: Page = "stack",
) -> Alert:
    """Return the alert, linked to its runbook and *page*."""
    return Alert(
        name,
        promql(expr),
        severity,
        summary,
        description,
        for_seconds=for_seconds,
        labels=STACK,
        links=links(spec, name, page),
    )
