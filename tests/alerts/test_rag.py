"""RAG rules beside slo.yaml: what they read, and that one slow stage is one notification."""

import re
from typing import Any

import pytest
import yaml

from alerts.alertmanager.inhibition import INHIBITIONS
from alerts.expressions import metric_names
from alerts.lint import faults
from alerts.rag import rag_groups
from alerts.rule import Alert, Record
from slo import spec as slo_spec
from slo.names import analysis
from slo.names import rag as names
from slo.spec import Spec

SPEC = slo_spec.load()
Labels = dict[str, str]
SLOW: Labels = {"alertname": "RagStageSlow", "severity": "ticket", "service": "rag", "stage": "retrieval"}


def meets(labels: Labels, matchers: list[str]) -> bool:
    """Whether an alert meets Alertmanager's matchers, `=` and `=~` as INHIBITIONS writes them."""
    for matcher in matchers:
        found = re.fullmatch(r'(\w+)(=~?)"(.*)"', matcher)
        assert found is not None
        name, operator, value = found.groups()
        own = labels.get(name, "")
        if not (re.fullmatch(value, own) if operator == "=~" else own == value):
            return False
    return True


def notified(firing: list[Labels]) -> list[str]:
    """Names of the alerts that no other one silences."""
    rules = [rule.as_dict() for rule in INHIBITIONS]

    def silenced(target: Labels) -> bool:
        return any(
            source is not target
            and meets(source, rule["source_matchers"])
            and meets(target, rule["target_matchers"])
            and all(source.get(label, "") == target.get(label, "") for label in rule["equal"])
            for rule in rules
            for source in firing
        )

    return [alert["alertname"] for alert in firing if not silenced(alert)]


def test_one_slow_stage_is_one_notification() -> None:
    """The request that it makes slow and the pool that it holds are not told beside it."""
    request = {"alertname": "RagRequestSlow", "severity": "ticket", "service": "rag", "stage": "request"}
    pool = {**SLOW, "alertname": "RagPoolExhausted", "pool": "index"}

    assert notified([SLOW, request, pool]) == ["RagStageSlow"]


def test_what_is_not_of_that_stage_is_still_told() -> None:
    """Another stage, another stage's pool, and another service."""
    other = {**SLOW, "stage": "rerank"}
    pool = {**SLOW, "alertname": "RagPoolExhausted", "pool": "engine", "stage": "generate"}
    elsewhere = {**SLOW, "alertname": "RagRequestSlow", "service": "rag2", "stage": "request"}

    assert notified([SLOW, other, pool, elsewhere]) == [
        "RagStageSlow",
        "RagStageSlow",
        "RagPoolExhausted",
        "RagRequestSlow",
    ]


def test_an_outage_is_one_page() -> None:
    """A stage that fails is told by its ticket, until the whole service fails."""
    failing = {**SLOW, "alertname": "RagStageFailing"}
    outage = {"alertname": "RagRequestsFailing", "severity": "page", "service": "rag"}
    down = {"alertname": "RagServiceDown", "severity": "page", "service": "rag"}

    assert notified([failing, SLOW]) == ["RagStageFailing"]
    assert notified([failing, SLOW, outage]) == ["RagRequestsFailing"]
    assert notified([failing, SLOW, outage, down]) == ["RagServiceDown"]


def test_a_collector_that_is_gone_says_why_spans_are_missing() -> None:
    """Nobody is told twice of it."""
    gone = {
        "alertname": "CollectorDown",
        "severity": "ticket",
        "service": "inferwatch",
        "job": "otel-collector",
    }
    missing = {"alertname": "RagSpansMissing", "severity": "ticket", "service": "rag"}

    assert notified([gone, missing]) == ["CollectorDown"]
    assert notified([missing]) == ["RagSpansMissing"]


def test_rules_read_only_what_is_published_or_recorded_above() -> None:
    """The service's metrics, span metrics, the analysis exporter's, and records of groups that come before."""
    published = {v for module in (names, analysis) for v in vars(module).values() if isinstance(v, str)}
    known = published | {f"{n}{part}" for n in published for part in ("_bucket", "_count", "_sum")} | {"up"}
    for group in rag_groups(SPEC):
        for rule in group.rules:
            unknown = metric_names(rule.expr) - known
            assert unknown <= {rule.name}, f"{group.name}: {rule.name} reads {unknown}"
            if isinstance(rule, Record):
                known.add(rule.name)


@pytest.mark.parametrize("environment", ["production", "staging"])
def test_windows_hold_enough_scrapes_in_every_environment(environment: str) -> None:
    """Scraped every 5 s in production, every 15 s in staging: four of them in the shortest window."""
    spec = slo_spec.load(environment=environment)
    content = {"groups": [group.as_dict() for group in rag_groups(spec)]}

    assert faults(content, {"": spec.intervals.scrape_seconds}) == []


def changed(path: str, value: Any) -> Spec:
    """The shipped spec with one key under `rag` replaced."""
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    *parents, last = path.split(".")
    inner = raw["rag"]
    for parent in parents:
        inner = inner[int(parent) if isinstance(inner, list) else parent]
    inner[last] = value
    return slo_spec.parse(raw)


def exprs(spec: Spec, alert: str) -> list[str]:
    """Expressions of the alert's rules."""
    return [r.expr for g in rag_groups(spec) for r in g.rules if isinstance(r, Alert) and r.name == alert]


@pytest.mark.parametrize(
    ("path", "value", "alert", "text"),
    [
        ("stages.2.threshold_seconds", 0.75, "RagStageSlow", 'stage="retrieval",quantile="0.95"}) > 0.75'),
        ("stages.2.max_error_ratio", 0.07, "RagStageFailing", '{stage="retrieval"} > 0.07'),
        ("min_requests", 33, "RagStageSlow", '{stage="retrieval"} >= 33'),
        ("pool.max_use_ratio", 0.77, "RagPoolExhausted", "rag_pool_use:ratio > 0.77"),
        ("truncation.max_ratio", 0.3, "RagContextTruncated", ":ratio > 0.3"),
        ("network.max_mean_seconds", 0.2, "NetworkSlow", "mean5m > 0.2"),
    ],
)
def test_numbers_come_from_the_spec(path: str, value: Any, alert: str, text: str) -> None:
    """A changed key changes its rule."""
    assert not any(text in expr for expr in exprs(SPEC, alert))
    assert any(text in expr for expr in exprs(changed(path, value), alert))
