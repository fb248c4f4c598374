"""Every alert has what a person on call needs: texts, a runbook, a dashboard, and a test that makes it fire."""

import re
from pathlib import Path

import pytest
import yaml

from alerts import lint
from alerts.registry import all_alerts, all_groups
from alerts.rule import Alert
from slo import spec as slo_spec
from slo.names import alerts as names
from slo.names import canary, engine

ROOT = Path(__file__).resolve().parents[2]
RUNBOOKS = ROOT / "alerts" / "runbooks"
HEADINGS = ["What it means", "Look here", "Do this", "False alarms", "How it is tested"]
SPEC = slo_spec.load()
ALERTS = all_alerts(SPEC)
PUBLISHED = {value for key, value in vars(names).items() if key.isupper()}
# slo.yaml as shipped knows no GPUs, so the floor has no rule; tests/integration/test_rules.py makes it one.
ONLY_WITH_GPUS = {"ThroughputLow"}


def test_alerts_and_published_names_are_the_same() -> None:
    """No rule without a published name, no name without a rule."""
    assert {alert.name for alert in ALERTS} | ONLY_WITH_GPUS == PUBLISHED


def test_alerts_and_runbooks_are_the_same() -> None:
    """A runbook for each alert, and none that is left over."""
    assert {path.stem for path in RUNBOOKS.glob("*.md")} == PUBLISHED


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_runbook_has_five_parts_with_text(name: str) -> None:
    """What it means, look here, do this, false alarms, how it is tested: in this order, none empty."""
    text = (RUNBOOKS / f"{name}.md").read_text(encoding="utf-8")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)

    assert parts[0].strip() == f"# {name}"
    assert parts[1::2] == HEADINGS
    assert all(part.strip("- \n") for part in parts[2::2])


def test_every_alert_fires_in_a_promtool_test() -> None:
    """ALERTS or alert_rule_test with an expected alert; silence alone proves nothing."""
    fired = set(ONLY_WITH_GPUS)
    for path in sorted((ROOT / "tests" / "alerts").glob("*.promtool.yaml")):
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            for case in test.get("promql_expr_test", ()):
                for sample in case["exp_samples"] or ():
                    fired |= set(re.findall(r'alertname="(\w+)",alertstate="firing"', sample["labels"]))
                if case["exp_samples"] and 'alertstate="firing"' in case["expr"]:
                    fired |= set(re.findall(r'alertname="(\w+)"', case["expr"]))
            for case in test.get("alert_rule_test", ()):
                if case["exp_alerts"]:
                    fired.add(case["alertname"])

    assert PUBLISHED - fired == set()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda a: f"{a.name}-{a.labels.get('sloth_slo', '')}")
def test_an_alert_says_what_people_need(alert: Alert) -> None:
    """Severity, service, summary, description, runbook that exists, dashboard; no value in a label."""
    rule = alert.as_dict()
    rule_labels, annotations = rule["labels"], rule["annotations"]
    assert isinstance(rule_labels, dict) and isinstance(annotations, dict)

    assert rule_labels["severity"] in ("page", "ticket", "warning", "none")
    assert len(annotations["summary"]) > 10 and len(annotations["description"]) > 40
    assert (ROOT / annotations["runbook_url"]).is_file()
    assert "/d/inferwatch-" in annotations["dashboard_url"]
    assert not [v for v in rule_labels.values() if "$value" in v or "{{" in v]


def test_early_signals_never_page() -> None:
    """What slo.yaml calls a signal is a warning."""
    signals = {
        "WaitingRequestsHigh",
        "PrefixCacheHitLow",
        "KvCachePressure",
        "PreemptionStorm",
        "AdmissionRejections",
        "ClientsVanishing",
    }

    assert {alert.severity for alert in ALERTS if alert.name in signals} == {"warning"}


def test_rules_read_only_what_somebody_provides() -> None:
    """Every raw engine and canary metric that a service's rules read is one that the exporters publish."""
    published = {v for module in (engine, canary) for v in vars(module).values() if isinstance(v, str)}
    known = published | {f"{n}{part}" for n in published for part in ("_bucket", "_count", "_sum")} | {"up"}
    content = {
        "groups": [g.as_dict() for g in all_groups(SPEC) if g.name.startswith(SPEC.services[0].id + "-")]
    }

    assert lint.dangling(content, known) == []
