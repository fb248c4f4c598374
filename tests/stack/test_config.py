"""Rendered configuration: what Prometheus, the exporters and the canary are given for a selection."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from inferwatch.stack import config, files, services
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo import spec as slo_spec

WISH = Selection("urls", ("http://127.0.0.1:8000", "https://llm.internal"), "llm")


def jobs(settings: Settings) -> dict[str, dict[str, object]]:
    """Scrape jobs by name."""
    rendered = config.prometheus_config(slo_spec.load(settings.spec_path), settings)
    return {job["job_name"]: job for job in rendered["scrape_configs"]}


def test_engines_are_read_through_the_exporter(settings: Settings) -> None:
    """An engine's URL becomes ?target= and `instance`; what is called is the exporter on loopback."""
    job = jobs(replace(settings, base_port=21000))["llm-engine"]

    assert job["metrics_path"] == "/probe"
    assert job["relabel_configs"] == [
        {"source_labels": ["__address__"], "target_label": "__param_target"},
        {"source_labels": ["__param_target"], "target_label": "instance"},
        {"target_label": "__address__", "replacement": "127.0.0.1:21101"},
    ]


def test_the_canary_keeps_its_labels_and_every_part_is_scraped(settings: Settings) -> None:
    """The canary's series name the engine they asked; exporters, Prometheus and Alertmanager watch each other."""
    found = jobs(settings)

    assert found["llm-canary"]["honor_labels"] is True
    assert found["llm-analysis"]["honor_labels"] is True
    exporters = ["llm-engine", "llm-canary", "engine-exporter", "llm-analysis"]
    assert found["node"]["honor_labels"] is True
    assert list(found) == [*exporters, "prometheus", "alertmanager", "node", "llm-load", "llm-drift"]


def test_intervals_come_from_the_spec(settings: Settings) -> None:
    """slo.yaml as shipped scrapes and judges every 5 s and waits at most 4 s for an answer."""
    rendered = config.prometheus_config(slo_spec.load(settings.spec_path), settings)

    assert rendered["global"] == {
        "scrape_interval": "5s",
        "scrape_timeout": "4s",
        "evaluation_interval": "5s",
    }


def test_only_the_chosen_engines_may_be_read() -> None:
    """The exporter's allow-list is exactly the selection; a URL without port means its scheme's."""
    assert files.allowed_targets(WISH) == [
        {"scheme": "http", "host": "127.0.0.1", "ports": [8000]},
        {"scheme": "https", "host": "llm.internal", "ports": [443]},
    ]


def test_all_files_are_written_whole(settings: Settings) -> None:
    """Targets, Prometheus' and the exporters' files stand in the run folder, and no draft is left."""
    files.write_all(slo_spec.load(settings.spec_path), settings, WISH)

    assert json.loads(settings.targets_file.read_text()) == [
        {"targets": ["http://127.0.0.1:8000", "https://llm.internal"], "labels": {"service": "llm"}}
    ]
    assert yaml.safe_load(settings.exporter_config.read_text()) == {"allow": files.allowed_targets(WISH)}
    assert settings.alertmanager_config.is_file()
    assert list(settings.run_dir.rglob("*.tmp")) == []


@pytest.mark.parametrize("service", ["prometheus", "alertmanager", "receiver", "exporter-engine"])
def test_everything_is_on_loopback(settings: Settings, service: str) -> None:
    """No service of ours listens where another machine could reach it."""
    assert settings.url(service).startswith("http://127.0.0.1:")


def test_every_severity_reaches_the_local_receiver(settings: Settings) -> None:
    """Pages, tickets, warnings and the sign of life are posted to our own webhook; templates are found."""
    rendered = yaml.safe_load(files.alertmanager_config(slo_spec.load(settings.spec_path), settings))

    hooks = {entry["name"]: entry["webhook_configs"] for entry in rendered["receivers"] if len(entry) > 1}
    assert set(hooks) == {"page", "ticket", "warning", "watchdog"}
    assert {hook["url"] for entry in hooks.values() for hook in entry} == {"http://127.0.0.1:19095/notify"}
    assert rendered["templates"] == [str(settings.root / "alerts/alertmanager/templates/*.tmpl")]


def test_a_secret_file_switches_on_its_way_beside_the_receiver(settings: Settings) -> None:
    """A Slack URL put into the run folder's secrets is referred to by path and never copied."""
    settings.secrets_dir.mkdir(parents=True)
    (settings.secrets_dir / "slack_url").write_text("http://127.0.0.1:9/hook")
    text = files.alertmanager_config(slo_spec.load(settings.spec_path), settings)

    assert str(settings.secrets_dir / "slack_url") in text
    assert "127.0.0.1:9/hook" not in text


def test_a_load_run_is_scraped_as_the_service_it_loads() -> None:
    """On loopback, at the port it got."""
    assert config.load_targets("llm", 12345) == [
        {"targets": ["127.0.0.1:12345"], "labels": {"service": "llm"}}
    ]


def test_drift_exporters_are_scraped_where_a_person_names_them(settings: Settings) -> None:
    """The person's file lies beside the engines', and beside that the one of our own exporter."""
    job = jobs(settings)["llm-drift"]

    assert job["file_sd_configs"] == [
        {"files": [str(settings.run_dir / "targets" / "drift*.json")], "refresh_interval": "5s"}
    ]


def test_a_drift_yml_in_the_run_folder_starts_and_scrapes_a_drift_exporter(settings: Settings) -> None:
    """Without the file there is neither service nor target; a change of it starts the exporter anew."""
    spec = slo_spec.load(settings.spec_path)

    def found() -> tuple[list[Service], object]:
        files.write_all(spec, settings, WISH)
        some = services.stack_services(
            spec, settings, WISH, {name: Path(name) for name in ("prometheus", "alertmanager")}, None
        )
        own = [one for one in some if one.name == "exporter-drift"]
        return own, json.loads((settings.run_dir / "targets" / "drift-own.json").read_text())

    assert found() == ([], [])
    settings.drift_config.write_text("references: []\n")
    (service,), targets = found()
    before = service.command_digest()
    settings.drift_config.write_text("references: [{file: minilm.npz}]\n")

    assert targets == [{"targets": ["127.0.0.1:19105"], "labels": {"service": "llm"}}]
    assert service.argv[1:5] == ("-m", "exporters", "drift", "--listen")
    assert str(settings.run_dir / "drift.yml") in service.argv
    assert service.command_digest() != before
