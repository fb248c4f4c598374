"""A real Alertmanager on our configuration: who is notified, of what, how soon."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from alerts.alertmanager import render
from slo import spec as slo_spec

from .amtools import Running, engine, started, wait_for

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture
def alertmanager(tmp_path: Path, hook: Hook) -> Iterator[Running]:
    """The pinned Alertmanager on the rendered configuration, its webhook ours."""
    config = tmp_path / "alertmanager.yml"
    config.write_text(
        render(SPEC, webhook_url=hook.url, templates=str(TEMPLATES / "*.tmpl")), encoding="utf-8"
    )
    with started(config, tmp_path) as running:
        yield running


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
    joint = engine("LatencyAndDriftCritical", "chat")
    alertmanager.post(joint)
    wait_for(lambda: hook.names() == ["LatencyAndDriftCritical"], 10)
    alertmanager.post(
        joint,
        engine("LatencyBurnFast", "chat", sloth_id="llm-request-latency"),
        {"alertname": "LatencyOrDriftWarning", "severity": "warning", "service": "llm"},
    )
    # What the rules send when the budget's page was first: drift-models.promtool.yaml holds them to it.
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
