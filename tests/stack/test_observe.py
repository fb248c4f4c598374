"""Attached engines are observed first: latency notifies nobody until a person accepts, everything else does."""

from pathlib import Path

import pytest
import yaml

from inferwatch.stack import files, observe
from inferwatch.stack.errors import StackError
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo import spec as slo_spec
from slo.trust import Links

OWN = Selection("sim", ("http://127.0.0.1:19000",), "llm")
STRANGER = Selection("urls", ("http://127.0.0.1:8000",), "llm")


def severities(folder: Path) -> dict[str, set[str]]:
    """Alert name -> the severities of its rules in all files of *folder*."""
    found: dict[str, set[str]] = {}
    for file in folder.glob("*.yaml"):
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                if "alert" in rule:
                    found.setdefault(rule["alert"], set()).add(rule["labels"]["severity"])
    return found


def rules_of(settings: Settings) -> Path:
    """The folder that the rendered Prometheus configuration reads."""
    (glob,) = yaml.safe_load(settings.prometheus_config.read_text())["rule_files"]
    return Path(glob).parent


def test_a_strangers_engine_pages_nobody_about_latency(settings: Settings) -> None:
    """Latency alerts carry severity none; availability, state and hang pages stay pages."""
    files.write_all(slo_spec.load(settings.spec_path), settings, STRANGER)
    found = severities(rules_of(settings))

    assert found["LatencyBurnFast"] == found["LatencyBurnSlow"] == {"none"}
    assert found["AvailabilityBurnFast"] == found["EngineDown"] == found["EngineHung"] == {"page"}
    assert found["ErrorBudgetLow"] == {"none", "ticket"}


def test_accepting_makes_latency_page(settings: Settings) -> None:
    """After accept, the rules that Prometheus reads page about latency."""
    observe.accept(settings, "llm")
    files.write_all(slo_spec.load(settings.spec_path), settings, STRANGER)

    assert severities(rules_of(settings))["LatencyBurnFast"] == {"page"}


def test_engines_of_our_own_are_never_only_observed(settings: Settings) -> None:
    """The simulated engine is there to be broken: its latency pages from the start."""
    assert not observe.is_observed(settings, Selection("sim", ("http://127.0.0.1:19000",), "llm"))


def test_what_is_only_seen_is_routed_to_nobody(settings: Settings) -> None:
    """Severity none ends at a receiver without any way of notification."""
    files.write_all(slo_spec.load(settings.spec_path), settings, STRANGER)
    config = yaml.safe_load(settings.alertmanager_config.read_text())
    (route,) = [r for r in config["route"]["routes"] if r["matchers"] == ['severity="none"']]
    (receiver,) = [r for r in config["receivers"] if r["name"] == route["receiver"]]

    assert receiver == {"name": route["receiver"]}


def annotations(folder: Path, alert: str) -> dict[str, str]:
    """Annotations of the first rule named *alert*."""
    groups = [g for file in folder.glob("*.yaml") for g in yaml.safe_load(file.read_text())["groups"]]
    found: dict[str, str] = next(
        r["annotations"] for g in groups for r in g["rules"] if r.get("alert") == alert
    )
    return found


def test_links_of_notifications_open_on_the_native_stack(settings: Settings) -> None:
    """No Grafana listens on port 3000 here: dashboard and runbook are the stack's own pages, on 19080."""
    files.write_all(slo_spec.load(settings.spec_path), settings, OWN)
    found = annotations(rules_of(settings), "EngineHung")

    assert found["runbook_url"] == "http://127.0.0.1:19080/runbooks/EngineHung.md"
    assert found["dashboard_url"].startswith("http://127.0.0.1:19080/d/inferwatch-engine?var-service=")


@pytest.mark.parametrize(
    ("dashboards", "runbooks", "expected"),
    [
        (
            "https://grafana.example",
            "https://wiki.example/rb",
            ("https://grafana.example", "https://wiki.example/rb"),
        ),
        ("http://localhost:3000", "docs/rb", ("http://127.0.0.1:19080", "http://127.0.0.1:19080/runbooks")),
        ("http://[::1]:3000", "https://wiki.example", ("http://127.0.0.1:19080", "https://wiki.example")),
    ],
)
def test_addresses_that_a_person_set_stay(
    settings: Settings, dashboards: str, runbooks: str, expected: tuple[str, str]
) -> None:
    """Only loopback and paths are replaced: both lead nowhere from a notification of this stack."""
    links = observe.links_in_force(Links(runbook_base=runbooks, dashboard_base=dashboards), settings)

    assert (links.dashboard_base, links.runbook_base) == expected


def test_a_damaged_list_of_acceptances_is_an_error(settings: Settings) -> None:
    """Guessing would either page a stranger or keep silent about a promise."""
    settings.accepted_file.parent.mkdir(parents=True, exist_ok=True)
    settings.accepted_file.write_text("[1]")

    with pytest.raises(StackError, match=r"accepted\.json is damaged .*remove it and accept again"):
        observe.accepted(settings)
