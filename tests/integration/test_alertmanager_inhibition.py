"""A real Alertmanager on our configuration: the incident silences its symptoms, and nothing that is not one."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from alerts.alertmanager import render
from alerts.alertmanager.inhibition import Inhibition
from slo import spec as slo_spec

from .amtools import Running, engine, started

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "alerts"
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture
def alertmanager(tmp_path: Path) -> Iterator[Running]:
    """The pinned Alertmanager on the rendered configuration, which notifies nobody."""
    config = tmp_path / "alertmanager.yml"
    templates = ROOT / "alerts" / "alertmanager" / "templates"
    config.write_text(render(slo_spec.load(), templates=str(templates / "*.tmpl")), encoding="utf-8")
    with started(config, tmp_path) as running:
        yield running


@pytest.mark.parametrize(
    ("rule", "inhibited"),
    [
        (None, {"DriftHigh", "KvHigh(chat,a)"}),
        (Inhibition((), (), ("model", "instance"), "critical", "warning"), {"KvHigh(chat,a)"}),
    ],
    ids=["as given", "as we write it"],
)
def test_alerts_without_the_labels_do_not_silence_each_other(
    tmp_path: Path, rule: Inhibition | None, inhibited: set[str]
) -> None:
    """Case A43: CollectorDown silences DriftHigh under the rule as given, and not when both sides must carry them."""
    given = yaml.safe_load((CASES / "A43" / "alertmanager.yml").read_text(encoding="utf-8"))
    if rule is not None:
        given["inhibit_rules"] = [rule.as_dict()]
    config = tmp_path / "alertmanager.yml"
    config.write_text(yaml.safe_dump(given), encoding="utf-8")
    with started(config, tmp_path) as running:
        running.post(*(a["labels"] for a in json.loads((CASES / "A43" / "alerts.json").read_text("utf-8"))))
        time.sleep(1)
        assert running.inhibited() == inhibited


def test_the_incident_silences_its_symptoms_and_nothing_else(alertmanager: Running) -> None:
    """By engine and by service; an alert that lacks the labels neither silences nor is silenced."""
    alertmanager.post(
        {"alertname": "CollectorDown", "severity": "page"},
        {"alertname": "DriftHigh", "severity": "warning"},
        engine("EngineDown", "chat", "a"),
        engine("CanaryFailing", "chat", "a"),
        engine("ProbesFailing", "chat", "a", "warning"),
        engine("CanaryFailing", "chat", "b"),
        engine("CanaryFailing", "embed", "c"),
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {"CanaryFailing(chat,a)", "ProbesFailing(chat,a)"}


def test_a_service_that_is_down_silences_what_follows_from_it(alertmanager: Running) -> None:
    """Latency, errors and signals of its model, not those of another model."""
    alertmanager.post(
        engine("ServiceDown", "chat"),
        engine("EngineDown", "chat", "a"),
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
        engine("AvailabilityBurnFast", "chat", sloth_id="llm-availability"),
        engine("WaitingRequestsHigh", "chat", severity="warning"),
        engine("WaitingRequestsHigh", "embed", severity="warning"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {
        "LatencyBurnFast(chat)",
        "AvailabilityBurnFast(chat)",
        "WaitingRequestsHigh(chat)",
    }


def test_the_page_silences_the_ticket_of_the_same_promise_only(alertmanager: Running) -> None:
    """Same SLO, service and model; another promise's ticket stays."""
    alertmanager.post(
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
        engine("LatencyBurnSlow", "chat", severity="ticket", sloth_id="llm-request-latency"),
        engine("LatencyBurnSlow", "embed", severity="ticket", sloth_id="llm-request-latency"),
        engine("AvailabilityBurnSlow", "chat", severity="ticket", sloth_id="llm-availability"),
        engine("TargetVanished", "chat", "a", "ticket"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {"LatencyBurnSlow(chat)"}


def test_one_slow_rag_stage_is_one_notification(alertmanager: Running) -> None:
    """Not the request that it makes slow, nor the pool it holds; a gone collector says why spans are missing."""

    def rag(name: str, stage: str, **more: str) -> dict[str, str]:
        return {"alertname": name, "severity": "ticket", "service": "rag", "stage": stage, **more}

    alertmanager.post(
        rag("RagStageSlow", "retrieval"),
        rag("RagStageSlow", "rerank"),
        rag("RagRequestSlow", "request"),
        rag("RagPoolExhausted", "retrieval", pool="index"),
        rag("RagPoolExhausted", "generate", pool="engine", instance="kept"),
        {
            "alertname": "CollectorDown",
            "severity": "ticket",
            "service": "inferwatch",
            "job": "otel-collector",
        },
        {"alertname": "RagSpansMissing", "severity": "ticket", "service": "rag2"},
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {"RagRequestSlow", "RagPoolExhausted", "RagSpansMissing"}


def scrapes(job: str, instance: str) -> dict[str, str]:
    """Labels of a warning about a target's scrapes; no service can be compared, for it has none but ours."""
    return {
        "alertname": "ScrapesFailing",
        "severity": "warning",
        "service": "inferwatch",
        "job": job,
        "instance": instance,
    }


def test_a_target_that_is_gone_is_told_once(alertmanager: Running) -> None:
    """By its own alert, not by that on its scrapes: node agents, Alertmanagers, engines that are scraped directly."""
    alertmanager.post(
        {
            "alertname": "NodeAgentDown",
            "severity": "ticket",
            "service": "node",
            "job": "node",
            "instance": "n:1",
        },
        scrapes("node", "n:1"),
        scrapes("node", "n:2"),
        engine("EngineDown", "chat", "e:1"),
        scrapes("vllm-direct", "e:1"),
        scrapes("vllm-direct", "e:2"),
        engine("ProbesFailing", "chat", "e:3", "warning"),
        scrapes("vllm-direct", "e:3"),
        {"alertname": "AlertmanagerDown", "severity": "page", "service": "inferwatch", "instance": "am:1"},
        scrapes("alertmanager", "am:1"),
        {"alertname": "ExporterDown", "severity": "page", "service": "inferwatch", "job": "llm-canary"},
        scrapes("llm-canary", "c:1"),
        scrapes("llm-engine", "x:1"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {
        "ScrapesFailing(n:1)",
        "ScrapesFailing(e:1)",
        "ScrapesFailing(e:3)",
        "ScrapesFailing(am:1)",
        "ScrapesFailing(c:1)",
    }


@pytest.mark.parametrize("incident", ["ServiceDown", "EngineDown", "EngineHung", "EngineAsleep"])
def test_an_engine_that_serves_nothing_says_why_throughput_is_low(
    alertmanager: Running, incident: str
) -> None:
    """The floor is of a whole service and names no model; that of another service is told."""
    low = {"alertname": "ThroughputLow", "severity": "ticket"}
    alertmanager.post(
        engine(incident, "chat", "" if incident == "ServiceDown" else "a"),
        low | {"service": "llm"},
        low | {"service": "other"},
    )
    time.sleep(1)

    found = alertmanager.get("/api/v2/alerts?inhibited=true&active=false")
    assert [(alert["labels"]["alertname"], alert["labels"]["service"]) for alert in found] == [
        ("ThroughputLow", "llm")
    ]


def test_a_page_on_latency_and_drift_is_of_its_own_model(alertmanager: Running) -> None:
    """The latency page of another model of the service is another incident, and so is a model that is down."""
    alertmanager.post(
        engine("LatencyAndDriftCritical", "chat"),
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
        engine("LatencyBurnFast", "embed", sloth_id="llm-request-latency"),
        engine("ServiceDown", "small"),
        engine("LatencyAndDriftCritical", "small"),
        {"alertname": "LatencyOrDriftWarning", "severity": "warning", "service": "llm"},
        engine("ServiceVanished", "gone", service="other"),
        engine("LatencyAndDriftCritical", "stays", service="other"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {
        "LatencyBurnFast(chat)",
        "LatencyAndDriftCritical(small)",
        "LatencyOrDriftWarning",
    }


def test_a_model_that_is_down_leaves_the_drift_of_its_service_told(alertmanager: Running) -> None:
    """Neither slow retrieval nor drift is of one model."""
    alertmanager.post(
        engine("ServiceDown", "chat"),
        {"alertname": "LatencyAndDriftCritical", "severity": "page", "service": "llm"},
        engine("ServiceDown", "chat", service="other"),
        {"alertname": "LatencyOrDriftWarning", "severity": "warning", "service": "other"},
    )
    time.sleep(1)

    assert alertmanager.inhibited() == set()


def test_slow_retrieval_with_drift_is_one_page_for_all_models(alertmanager: Running) -> None:
    """It is looked up for whichever model answers, so that its page has no model and stands for all of them."""
    alertmanager.post(
        {"alertname": "LatencyAndDriftCritical", "severity": "page", "service": "llm"},
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
        engine("LatencyBurnSlow", "embed", severity="ticket", sloth_id="llm-request-latency"),
        engine("LatencyBurnFast", "chat", sloth_id="other-request-latency", service="other"),
    )
    time.sleep(1)

    found = alertmanager.get("/api/v2/alerts?inhibited=true&active=false")
    assert {(alert["labels"]["service"], alert["labels"]["model"]) for alert in found} == {
        ("llm", "chat"),
        ("llm", "embed"),
    }


def test_one_engine_that_hangs_leaves_the_signals_of_the_others_told(alertmanager: Running) -> None:
    """The rules leave it out of the model's signals; once all hang, the model is down and its signals follow."""
    alertmanager.post(
        engine("EngineHung", "chat", "a"),
        engine("CanaryFailing", "chat", "a"),
        engine("CanaryFailing", "chat", "b"),
        engine("PreemptionStorm", "chat", severity="warning"),
        engine("EngineHung", "embed", "c"),
        engine("ServiceDown", "embed"),
        engine("WaitingRequestsHigh", "embed", severity="warning"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {"CanaryFailing(chat,a)", "WaitingRequestsHigh(embed)"}


def test_a_swapped_embedding_model_leaves_the_others_of_its_service_told(alertmanager: Running) -> None:
    """What cannot be judged because of the swap is of the same model."""
    alertmanager.post(
        engine("EmbeddingModelSwapped", "small", severity="ticket", reason="dimension"),
        engine("EmbeddingDriftUnknown", "small", severity="warning"),
        engine("EmbeddingDriftUnknown", "large", severity="warning"),
    )
    time.sleep(1)

    assert alertmanager.inhibited() == {"EmbeddingDriftUnknown(small)"}
