"""A real Alertmanager on our configuration: who is notified, of what, how soon, and in which words."""

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
from rich.console import Console

from alerts.alertmanager import render
from alerts.alertmanager.inhibition import Inhibition
from inferwatch.stack import binaries
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "alerts"
TEMPLATES = ROOT / "alerts" / "alertmanager" / "templates"
SPEC = slo_spec.load()
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def tool(name: str, old: bool = False) -> str:
    """Path of amtool or alertmanager, the pinned one or the distribution's."""
    find = binaries.from_distribution if old else binaries.resolve
    return str(find(name, default_settings(), Reporter(Console(stderr=True))).path)


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


@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        (["severity=page", "service=llm"], "page"),
        (["severity=ticket", "service=llm"], "ticket"),
        (["severity=warning", "service=llm"], "warning"),
        (["severity=none", "alertname=Watchdog"], "watchdog"),
        (["severity=unheard-of"], "warning"),
    ],
)
@pytest.mark.parametrize("old", [False, True], ids=["pinned", "distribution"])
def test_routes(labels: list[str], receiver: str, old: bool) -> None:
    """amtool sends each severity where slo.yaml says; nothing falls through."""
    answer = subprocess.run(
        [
            tool("amtool", old),
            "config",
            "routes",
            "test",
            f"--config.file={ROOT / 'alerts/alertmanager/alertmanager.yml'}",
            f"--verify.receivers={receiver}",
            *labels,
        ],
        capture_output=True,
        text=True,
        check=False,
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.parametrize("old", [False, True], ids=["pinned", "distribution"])
def test_every_way_at_once_is_accepted(tmp_path: Path, old: bool) -> None:
    """All secrets there: both Alertmanagers take the configuration; 0.25 knows no url_file for webhooks."""
    for name in ("slack_url", "pagerduty_routing_key", "email_password", *([] if old else ["webhook_url"])):
        (tmp_path / name).write_text("http://127.0.0.1/x", encoding="utf-8")
    (tmp_path / "email_settings").write_text("to=a@b.c\nfrom=d@e.f\nsmarthost=m:25\n", encoding="utf-8")
    config = tmp_path / "alertmanager.yml"
    config.write_text(
        render(SPEC, secrets_dir=tmp_path, templates=str(TEMPLATES / "*.tmpl")), encoding="utf-8"
    )

    answer = subprocess.run(
        [tool("amtool", old), "check-config", str(config)], capture_output=True, text=True, check=False
    )

    assert answer.returncode == 0, answer.stdout + answer.stderr


def rendered(template: str, data: Path, files: str = str(TEMPLATES / "*.tmpl")) -> str:
    """A template as Alertmanager would send it."""
    return subprocess.run(
        [
            tool("amtool"),
            "template",
            "render",
            f"--template.glob={files}",
            f"--template.text={{{{ template {json.dumps(template)} . }}}}",
            f"--template.data={data}",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_a_notification_with_missing_fields_has_no_hole() -> None:
    """No summary: the message, the description or the name stands in its place; never "<no value>"."""
    data = CASES / "A44" / "data.json"
    lines = rendered("inferwatch.lines", data).strip().splitlines()

    assert lines == ["[firing] TTFTHigh: TTFT above limit", "[firing] GPULost: GPU lost"]
    for template in ("inferwatch.title", "inferwatch.text", "inferwatch.email"):
        text = rendered(template, data)
        assert text.strip() and "<no value>" not in text


def test_a_template_that_breaks_on_such_data_is_refused() -> None:
    """One that reads a field which is not there at all would send nothing."""
    with pytest.raises(subprocess.CalledProcessError):
        rendered("ours.text", CASES / "A44" / "data.json", str(CASES / "A44" / "bad.tmpl"))


def test_what_a_person_reads_at_night(tmp_path: Path) -> None:
    """Title: severity, whose, what. Text: each alert in a line, the promise, the runbook, the dashboard."""
    down = {
        "status": "firing",
        "labels": {"alertname": "EngineDown", "severity": "page", "service": "chat", "model": "m"},
        "annotations": {
            "summary": "chat / m: engine a:8000 is down (refused)",
            "description": "The engine does not answer its probes.",
            "runbook_url": "https://runbooks/EngineDown.md",
            "dashboard_url": "https://grafana/d/inferwatch-engine",
        },
        "startsAt": "2026-01-01T03:00:00Z",
        "endsAt": "0001-01-01T00:00:00Z",
        "generatorURL": "http://p",
        "fingerprint": "1",
    }
    over = down | {
        "status": "resolved",
        "labels": down["labels"] | {"alertname": "EngineHung"},
        "fingerprint": "2",
    }
    common = {"severity": "page", "service": "chat", "model": "m"}
    path = tmp_path / "data.json"

    def write(status: str, *alerts: Any) -> None:
        data = {
            "receiver": "page",
            "status": status,
            "alerts": alerts,
            "groupLabels": common,
            "commonLabels": common,
            "commonAnnotations": {},
            "externalURL": "http://am",
        }
        path.write_text(json.dumps(data), encoding="utf-8")

    write("firing", down, over)
    assert rendered("inferwatch.title", path).strip() == (
        "[PAGE] chat / m: EngineDown, EngineHung (1 firing of 2)"
    )
    assert rendered("inferwatch.text", path).strip().splitlines() == [
        "[firing] EngineDown: chat / m: engine a:8000 is down (refused)",
        "  The engine does not answer its probes.",
        "  What to do: https://runbooks/EngineDown.md",
        "  See: https://grafana/d/inferwatch-engine",
        "[ok] EngineHung: chat / m: engine a:8000 is down (refused)",
    ]
    write("firing", down)
    assert rendered("inferwatch.title", path).strip() == "[PAGE] chat / m: EngineDown"
    write("resolved", over)
    assert rendered("inferwatch.title", path).strip() == "[OK] chat / m: EngineHung"


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
