"""Every alert has what a person on call needs: texts, a runbook, a dashboard, and a test that makes it fire."""

import json
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


def with_gpus() -> tuple[Alert, ...]:
    """Every alert of the shipped spec, and that on a throughput floor of GPUs that are known."""
    raw = yaml.safe_load(slo_spec.DEFAULT_PATH.read_text(encoding="utf-8"))
    raw["services"][0]["throughput_floor"].update(gpus=2, gpu_model="NVIDIA A100-SXM4-80GB")
    return all_alerts(slo_spec.parse(raw))


WITH_GPUS = with_gpus()
EACH_ALERT = pytest.mark.parametrize(
    "alert", WITH_GPUS, ids=lambda a: f"{a.name}-{a.labels.get('sloth_slo') or a.labels.get('stage', '')}"
)
PUBLISHED = {value for key, value in vars(names).items() if key.isupper()}
# What no number says: what is deployed, fitted or sampled is what is in use.
PROMISED_WITHOUT_A_NUMBER = {
    "EmbeddingModelSwapped",
    "PrometheusConfigFailed",
    "AlertmanagerConfigFailed",
    "AlertmanagerClusterDegraded",
    "RagSpansMissing",
}
# Says nothing of anything: it fires while all is well.
NO_VALUE_AND_NO_PROMISE = {"Watchdog"}
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


@EACH_ALERT
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


def spoken(template: str) -> str:
    """The template without what stands in its braces: the words and numbers that are always there."""
    return re.sub(r"\{\{.*?\}\}", "", template)


@EACH_ALERT
def test_a_description_tells_the_value_and_the_promise(alert: Alert) -> None:
    """`Now: …`, filled in when it fires or a state with its duration, then `Promised: …` or `Wanted: …` in numbers."""
    if alert.name in NO_VALUE_AND_NO_PROMISE:
        return
    parts = re.fullmatch(
        r"Now:(?P<now>.+?)(Promised|Wanted): (?P<promise>.+?\.)( .+)?", alert.description, re.DOTALL
    )
    assert parts is not None, alert.description

    filled_in = re.search(r"\$value|\.Value|\$labels\.(state|reason)", parts["now"])
    state = (
        re.search(r"(for over|over) \d+ (s|min|h|d)\b", spoken(parts["now"])) or "state is" in parts["now"]
    )
    assert filled_in or state, parts["now"]
    if alert.name not in PROMISED_WITHOUT_A_NUMBER:
        assert re.search(r"\d|\bnone\b", spoken(parts["promise"])), parts["promise"]


@EACH_ALERT
def test_values_are_in_units_that_people_read(alert: Alert) -> None:
    """A ratio as a percentage, seconds as a duration, no 0.33333333; a count of things may stand as it is."""
    whole = {
        "MixedBuckets",
        "CounterInconsistent",
        "ServiceVanished",
        "GpuLost",
        "AlertmanagerClusterDegraded",
    }
    for text in (alert.summary, alert.description):
        if alert.name not in whole:
            assert not re.search(r"\{\{ \$value \}\}", text), text


@EACH_ALERT
def test_a_description_does_not_repeat_the_summary(alert: Alert) -> None:
    """Both stand in a notification, one above the other."""
    parts = [spoken(part).strip() for part in re.split(r"[:;,] ", alert.summary)]
    repeated = [part for part in parts if len(part.split()) >= 3 and part in spoken(alert.description)]

    assert repeated == []


def test_the_list_names_every_alert() -> None:
    """docs/alerts.md: a row with a link to each runbook, and no template that only Prometheus fills in."""
    text = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\| \[(\w+)\]", text, flags=re.MULTILINE)) == PUBLISHED
    assert not [line for line in text.splitlines() if "{{" in line]


@EACH_ALERT
def test_a_link_opens_a_page_that_has_its_variables(alert: Alert) -> None:
    """Grafana drops what a page does not know: the person then sees everything."""
    uid, _, query = alert.links["dashboard_url"].rpartition("/d/")[2].partition("?")
    page = json.loads((ROOT / "dashboards" / "json" / f"{uid}.json").read_text(encoding="utf-8"))
    known = {variable["name"] for variable in page["templating"]["list"]}

    assert set(re.findall(r"var-(\w+)=", query)) <= known


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
    known = published | {f"{n}{part}" for n in published for part in ("_bucket", "_count", "_sum")}
    known |= {"up", "ALERTS"}  # Prometheus' own
    content = {
        "groups": [g.as_dict() for g in all_groups(SPEC) if g.name.startswith(SPEC.services[0].id + "-")]
    }

    assert lint.dangling(content, known) == []
