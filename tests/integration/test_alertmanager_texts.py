"""Our configuration and templates under amtool: where an alert goes, and which words a person reads."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from alerts.alertmanager import render
from slo import spec as slo_spec

from .amtools import tool

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "alerts"
TEMPLATES = ROOT / "alerts" / "alertmanager" / "templates"
SPEC = slo_spec.load()
pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


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
