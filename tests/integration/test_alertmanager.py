"""A real Alertmanager on our configuration: who is notified, of what, how soon."""

import json
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.alertmanager import render
from alerts.alertmanager.inhibition import Inhibition
from slo import spec as slo_spec

from .amtools import tool

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "alerts"
TEMPLATES = ROOT / "alerts" / "alertmanager" / "templates"
SPEC = slo_spec.load()
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@dataclass
class Hook:
    """A webhook receiver that keeps what it is sent."""

    url: str
    received: list[dict[str, Any]] = field(default_factory=list)

    def names(self, status: str = "firing") -> list[str]:
        """Names of alerts notified with that status, in order."""
        return [
            alert["labels"]["alertname"]
            for notice in self.received
            for alert in notice["alerts"]
            if alert["status"] == status
        ]


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A webhook on a free port."""
    received: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(json.loads(body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Hook(f"http://127.0.0.1:{server.server_port}/", received)
    server.shutdown()
    server.server_close()


@dataclass(frozen=True)
class Running:
    """An Alertmanager that runs."""

    url: str
    log: Path

    def post(self, *alerts: dict[str, str]) -> None:
        """Send alerts, given as labels, as Prometheus does."""
        now = datetime.now(UTC).isoformat()
        body = [
            {"labels": labels, "annotations": {"summary": f"{labels['alertname']} it is"}, "startsAt": now}
            for labels in alerts
        ]
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert answer.status == 200

    def get(self, path: str) -> Any:
        """An answer of the API."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=5) as answer:
            return json.load(answer)

    def inhibited(self) -> set[str]:
        """Alerts that something else silences, as name(model,instance)."""
        return {
            _shown(alert["labels"]) for alert in self.get("/api/v2/alerts") if alert["status"]["inhibitedBy"]
        }


def _shown(labels: dict[str, str]) -> str:
    where = ",".join(labels[name] for name in ("model", "instance") if name in labels)
    return f"{labels['alertname']}({where})" if where else labels["alertname"]


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Return when the condition holds; fail when it does not within the time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.05)


@pytest.fixture
def alertmanager(tmp_path: Path, hook: Hook) -> Iterator[Running]:
    """The pinned Alertmanager on the rendered configuration, its webhook ours."""
    config = tmp_path / "alertmanager.yml"
    config.write_text(
        render(SPEC, webhook_url=hook.url, templates=str(TEMPLATES / "*.tmpl")), encoding="utf-8"
    )
    with started(config, tmp_path) as running:
        yield running


@contextmanager
def started(config: Path, tmp_path: Path) -> Iterator[Running]:
    """The pinned Alertmanager on this configuration, ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "log"
    with log.open("w", encoding="utf-8") as sink:
        process = subprocess.Popen(
            [
                tool("alertmanager"),
                f"--config.file={config}",
                f"--storage.path={tmp_path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--cluster.listen-address=",
            ],
            stdout=sink,
            stderr=sink,
        )
    running = Running(f"http://127.0.0.1:{port}", log)
    try:
        wait_for(lambda: _answers(f"{running.url}/-/ready"), 30)
        yield running
    finally:
        process.terminate()
        process.wait(timeout=20)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


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


def engine(name: str, model: str, instance: str = "", severity: str = "page", **more: str) -> dict[str, str]:
    """Labels of an alert of ours."""
    where = {"instance": instance} if instance else {}
    return {"alertname": name, "severity": severity, "service": "llm", "model": model, **where, **more}


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


def test_pages_come_at_once_and_together_by_service_and_model(alertmanager: Running, hook: Hook) -> None:
    """Two engines of one model are one notification, another model is another; a ticket waits longer."""
    alertmanager.post(
        engine("EngineDown", "chat", "a"),
        engine("EngineDown", "chat", "b"),
        engine("EngineDown", "embed", "c"),
        engine("TargetVanished", "chat", "z", "ticket"),
    )
    wait_for(lambda: len(hook.names()) >= 3, 10)
    pages = sorted(
        (notice["groupLabels"]["model"], sorted(alert["labels"]["instance"] for alert in notice["alerts"]))
        for notice in hook.received
    )

    assert pages == [("chat", ["a", "b"]), ("embed", ["c"])]
    assert hook.received[0]["receiver"] == "page"
    assert hook.received[0]["alerts"][0]["annotations"] == {"summary": "EngineDown it is"}


def test_the_sign_of_life_has_its_own_way(alertmanager: Running, hook: Hook) -> None:
    """It goes to the watchdog's receiver at once."""
    alertmanager.post({"alertname": "Watchdog", "severity": "none", "service": "inferwatch"})
    wait_for(lambda: hook.received, 10)

    assert (hook.received[0]["receiver"], hook.names()) == ("watchdog", ["Watchdog"])


def test_latency_and_drift_are_one_page_whichever_was_first(alertmanager: Running, hook: Hook) -> None:
    """The joint page silences the budget's that comes after it; a budget's page that was first has a warning beside it."""
    joint = {"alertname": "LatencyAndDriftCritical", "severity": "page", "service": "llm"}
    alertmanager.post(joint)
    wait_for(lambda: hook.names() == ["LatencyAndDriftCritical"], 10)
    alertmanager.post(
        joint,
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
        {"alertname": "LatencyOrDriftWarning", "severity": "warning", "service": "llm"},
    )
    # What the rules send when the budget's page was first: drift-streams.promtool.yaml holds them to it.
    alertmanager.post(
        engine("LatencyBurnFast", "chat", sloth_id="other-request-latency", service="other"),
        {"alertname": "LatencyOrDriftWarning", "severity": "warning", "service": "other"},
    )
    wait_for(lambda: "LatencyBurnFast" in hook.names(), 10)
    time.sleep(3)

    assert alertmanager.inhibited() == {"LatencyBurnFast(chat)", "LatencyOrDriftWarning"}
    pages = [
        (alert["labels"]["service"], alert["labels"]["alertname"])
        for notice in hook.received
        if notice["receiver"] == "page"
        for alert in notice["alerts"]
    ]
    assert sorted(pages) == [("llm", "LatencyAndDriftCritical"), ("other", "LatencyBurnFast")]
    assert {
        alert["labels"]["service"] for alert in alertmanager.get("/api/v2/alerts?inhibited=true&active=false")
    } == {"llm"}
