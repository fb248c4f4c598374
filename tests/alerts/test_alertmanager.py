"""Alertmanager's configuration from slo.yaml and the secret files that are there, and its pre-start check."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.alertmanager import render
from alerts.alertmanager.inhibition import INHIBITIONS
from alerts.alertmanager.precheck import faults
from alerts.alertmanager.receivers import ReceiverError
from alerts.registry import all_alerts
from slo import spec as slo_spec

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "alerts"
SPEC = slo_spec.load()


def secrets(folder: Path, **files: str) -> Path:
    """A secrets folder with these files."""
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def receivers(text: str) -> dict[str, dict[str, Any]]:
    """Receivers by name."""
    return {entry["name"]: entry for entry in yaml.safe_load(text)["receivers"]}


def test_without_a_secret_every_route_has_a_receiver_that_needs_none() -> None:
    """The stack starts on a bare machine; alerts are seen on Alertmanager's page."""
    found = receivers(render(SPEC))

    assert {"page", "ticket", "warning", "watchdog"} <= set(found)
    assert all(entry == {"name": name} for name, entry in found.items())


def test_files_switch_ways_on_and_their_content_is_nowhere(tmp_path: Path) -> None:
    """Each way refers to its file; the secret itself does not stand in the configuration."""
    folder = secrets(
        tmp_path,
        slack_url="https://hooks.example/SECRET1",
        pagerduty_routing_key="SECRET2",
        email_password="SECRET3",
        email_settings="to=oncall@example.org\nfrom=watch@example.org\n# mail\nsmarthost=mail.example.org:587\n",
        webhook_url="http://hook.example/SECRET4",
    )

    text = render(SPEC, secrets_dir=folder, secrets_shown="/etc/alertmanager/secrets")
    page, ticket = receivers(text)["page"], receivers(text)["ticket"]

    assert "SECRET" not in text
    assert page["slack_configs"][0]["api_url_file"] == "/etc/alertmanager/secrets/slack_url"
    assert (
        page["pagerduty_configs"][0]["routing_key_file"] == "/etc/alertmanager/secrets/pagerduty_routing_key"
    )
    assert page["email_configs"][0]["auth_password_file"] == "/etc/alertmanager/secrets/email_password"
    assert page["email_configs"][0]["to"] == "oncall@example.org"
    assert page["webhook_configs"] == [
        {"url_file": "/etc/alertmanager/secrets/webhook_url", "send_resolved": True}
    ]
    assert "pagerduty_configs" not in ticket and "slack_configs" in ticket


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "email_settings: missing beside email_password; write lines to=, from= and smarthost="),
        ("to=a@b.c\nfrom=a@b.c\n", "smarthost is missing; add a line smarthost="),
        ("to a@b.c", "'to a@b.c': not name=value"),
        ("to=a@b.c\nfrom=a@b.c\nsmarthost=m:25\ncc=x", "cc: unknown; use to, from, smarthost, username"),
    ],
)
def test_mail_set_up_by_half_is_an_error_that_says_what_is_missing(
    tmp_path: Path, settings: str | None, message: str
) -> None:
    """A password alone sends no mail."""
    folder = secrets(tmp_path, email_password="x", **({"email_settings": settings} if settings else {}))

    with pytest.raises(ReceiverError, match="email_settings") as error:
        render(SPEC, secrets_dir=folder)
    assert message in str(error.value)


def test_pages_are_quick_and_the_sign_of_life_comes_every_minute() -> None:
    """Group waits and intervals are those of slo.yaml; the watchdog has a route of its own."""
    route = yaml.safe_load(render(SPEC))["route"]
    by_matcher = {child["matchers"][0]: child for child in route["routes"]}

    assert route["group_by"] == ["service", "model"]
    assert by_matcher['severity="page"']["group_wait"] == "1s"
    # Every minute: a repetition is due before the group's next turn, else every other turn is silent.
    watchdog = by_matcher['alertname="Watchdog"']
    assert (watchdog["group_interval"], watchdog["repeat_interval"]) == ("1m", "30s")
    assert by_matcher['severity="ticket"'].get("group_wait", route["group_wait"]) == "30s"


def test_both_sides_of_an_inhibition_must_carry_what_is_compared() -> None:
    """Two missing labels count as equal: an alert without them would silence every other one without them."""
    for rule in INHIBITIONS:
        sides = rule.as_dict()
        for label in sides["equal"]:
            assert f'{label}=~".+"' in sides["source_matchers"]
            assert f'{label}=~".+"' in sides["target_matchers"]


def test_inhibitions_name_alerts_that_exist() -> None:
    """A misspelt source silences nothing, a misspelt target is never silenced."""
    known = {alert.name for alert in all_alerts(SPEC)} | {"ThroughputLow"}
    named = {name for rule in INHIBITIONS for name in (*rule.source, *rule.target)}

    assert named - known == set()


def test_nothing_inhibits_the_sign_of_life_or_a_watcher_that_fails() -> None:
    """Who silences those silences everything."""
    kept = {
        "Watchdog",
        "AlertsNotSent",
        "NotificationsFailing",
        "AlertmanagerDown",
        "ExporterDown",
        "EngineDown",
    }

    assert not [rule for rule in INHIBITIONS if kept & set(rule.target)]


def test_a_placeholder_that_nobody_fills_in_is_found_before_the_start() -> None:
    """Alertmanager would send to the literal ${SLACK_WEBHOOK_URL}."""
    (found,) = faults(CASES / "A45" / "alertmanager.yml")

    assert (
        "receivers[0].slack_configs[0].api_url: ${SLACK_WEBHOOK_URL} is not expanded by Alertmanager" in found
    )
    assert "api_url_file" in found


def test_secret_files_that_are_missing_or_empty_are_found(tmp_path: Path) -> None:
    """Alertmanager starts with them and fails at the first alert. The content is never shown."""
    folder = secrets(tmp_path / "s", slack_url="https://x/SECRET", webhook_url="http://y")
    config = tmp_path / "alertmanager.yml"
    config.write_text(render(SPEC, secrets_dir=folder), encoding="utf-8")
    assert faults(config) == []

    (folder / "slack_url").write_text("  \n", encoding="utf-8")
    (folder / "webhook_url").unlink()
    found = "\n".join(faults(config))

    assert "slack_url: is empty; write the secret into it" in found
    assert "webhook_url: cannot be read: No such file or directory" in found
    assert "SECRET" not in found


def test_the_committed_configuration_passes_the_check() -> None:
    """Nothing to fill in, no secret needed."""
    assert faults(ROOT / "alerts" / "alertmanager" / "alertmanager.yml") == []


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    """A file that is not there, and one that is no YAML."""
    broken = tmp_path / "broken.yml"
    broken.write_text("a: [", encoding="utf-8")

    assert "cannot be read: No such file" in faults(tmp_path / "none.yml")[0]
    assert "not valid YAML" in faults(broken)[0]
