"""What the init container makes: passwords once, secrets for Alertmanager's group, targets from .env."""

import json
import stat
from pathlib import Path

import pytest
import yaml

from exporters.drift.config import Ingest, ingest_token, load_config
from inferwatch.compose import engine_cpu, model
from inferwatch.compose.init import Folders, add_node, add_rag, prepare
from inferwatch.stack.errors import StackError
from inferwatch.stack.vllm_cpu import VllmCpu
from slo import spec as slo_spec

ENGINES = {
    "INFERWATCH_ENGINES": "http://engine:8000, http://host.docker.internal:8001",
    "INFERWATCH_SERVICE": "llm",
}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Empty volumes, and a folder of the person's secrets."""
    for name in ("config", "secrets", "notify"):
        (tmp_path / name).mkdir()
    return Folders(
        tmp_path / "config",
        tmp_path / "secrets",
        tmp_path / "notify",
        firing=tmp_path / "firing" / "models.yaml",
    )


def test_the_sampler_finds_a_list_and_a_running_one_is_kept(folders: Folders) -> None:
    """Empty at the first start; what the watcher wrote stays at the next."""
    prepare(slo_spec.load(), folders, ENGINES)
    assert folders.firing.read_text() == "[]\n"
    folders.firing.write_text('["llama"]\n')
    prepare(slo_spec.load(), folders, ENGINES)
    assert folders.firing.read_text() == '["llama"]\n'


def test_a_rag_service_is_scraped_once_it_is_added(folders: Folders) -> None:
    """No target by itself; profile rag adds one under the service that its spans name."""
    prepare(slo_spec.load(), folders, ENGINES)
    file = folders.config / "targets" / "rag.json"
    assert json.loads(file.read_text()) == []
    assert add_rag(folders, "rag:8110") == "RAG services: rag:8110"
    assert json.loads(file.read_text()) == [{"targets": ["rag:8110"], "labels": {"service": "rag"}}]


def test_the_password_is_made_once_and_never_shown(folders: Folders) -> None:
    """32 characters or more, readable by owner and group only, kept at the next start, in no line of output."""
    said = prepare(slo_spec.load(), folders, ENGINES)
    file = folders.secrets / "grafana_admin_password"
    first = file.read_text()
    again = prepare(slo_spec.load(), folders, ENGINES)

    assert len(first) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o440
    assert file.read_text() == first
    assert "kept" in again[0]
    assert first not in "".join(said + again)


def test_the_drift_exporter_finds_its_token_and_is_scraped(folders: Folders) -> None:
    """What deploy/drift and .env name is made here: a token that the ingest port takes, and the target."""
    root = Path(__file__).resolve().parents[2]
    named = load_config(root / "deploy" / "drift" / "drift.yml").ingest
    assert named.token_file == "/run/inferwatch/secrets/drift_ingest_token"
    prepare(slo_spec.load(), folders, {**ENGINES, **model.read_env(root / ".env")})
    token = ingest_token(Ingest(token_file="drift_ingest_token"), folders.secrets, "0.0.0.0")

    assert token is not None
    assert json.loads((folders.config / "targets" / "drift.json").read_text()) == [
        {"targets": ["exporter-drift:9490"], "labels": {"service": "llm"}}
    ]


def test_targets_and_the_allow_list_come_from_env(folders: Folders) -> None:
    """Every engine named in .env is a target with its service, and nothing else may be read."""
    prepare(slo_spec.load(), folders, ENGINES)
    targets = json.loads((folders.config / "targets" / "engines.json").read_text())
    allow = yaml.safe_load((folders.config / "exporter-engine.yml").read_text())["allow"]

    assert targets == [
        {"targets": ["http://engine:8000", "http://host.docker.internal:8001"], "labels": {"service": "llm"}}
    ]
    assert [(a["host"], a["ports"]) for a in allow] == [("engine", [8000]), ("host.docker.internal", [8001])]
    assert json.loads((folders.config / "targets" / "nodes.json").read_text()) == []


def test_drift_exporters_are_those_named(folders: Folders) -> None:
    """None where none is named; named ones carry the service; what is no address is refused."""
    file = folders.config / "targets" / "drift.json"
    prepare(slo_spec.load(), folders, {**ENGINES, "INFERWATCH_DRIFT": ""})
    assert json.loads(file.read_text()) == []
    prepare(slo_spec.load(), folders, {**ENGINES, "INFERWATCH_DRIFT": "drift:9483"})
    assert json.loads(file.read_text()) == [{"targets": ["drift:9483"], "labels": {"service": "llm"}}]
    with pytest.raises(StackError, match="'http://drift' is not HOST:PORT"):
        prepare(slo_spec.load(), folders, {**ENGINES, "INFERWATCH_DRIFT": "http://drift"})


def test_a_node_agent_is_added_beside_the_engines(folders: Folders) -> None:
    """Only profile gpu has one; without it Prometheus waits for none."""
    prepare(slo_spec.load(), folders, ENGINES)
    add_node(folders, "exporter-node:9481")

    assert json.loads((folders.config / "targets" / "nodes.json").read_text()) == [
        {"targets": ["exporter-node:9481"], "labels": {}}
    ]


def test_a_secret_is_copied_for_alertmanager_and_goes_when_it_goes(folders: Folders) -> None:
    """Slack is switched on by its file, by path, and off again when the file is taken away."""
    (folders.notify / "README.md").write_text("not a secret")
    (folders.notify / "slack_url").write_text("http://127.0.0.1:9/hook\n")
    prepare(slo_spec.load(), folders, ENGINES)
    config = (folders.config / "alertmanager.yml").read_text()
    copy = folders.secrets / "notify" / "slack_url"

    assert (copy.read_text(), stat.S_IMODE(copy.stat().st_mode)) == ("http://127.0.0.1:9/hook", 0o440)
    assert f"api_url_file: {copy}" in config
    assert "127.0.0.1:9/hook" not in config
    assert "url: http://receiver:9095/notify" in config

    (folders.notify / "slack_url").unlink()
    prepare(slo_spec.load(), folders, ENGINES)
    assert not copy.exists()
    assert "slack" not in (folders.config / "alertmanager.yml").read_text()


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "INFERWATCH_ENGINES is empty; set it in .env"),
        ({"INFERWATCH_ENGINES": "engine"}, "'engine' is neither"),
        (
            {**ENGINES, "INFERWATCH_SERVICE": "x"},
            "INFERWATCH_SERVICE=x: slo.yaml has no such service; it has llm",
        ),
    ],
)
def test_what_cannot_be_used_is_named(folders: Folders, environ: dict[str, str], said: str) -> None:
    """A wrong .env ends the init container with its reason, and nothing else starts."""
    with pytest.raises(StackError, match=said):
        prepare(slo_spec.load(), folders, environ)


def test_vllm_in_its_container_is_the_launchers_but_for_its_address() -> None:
    """Same flags as natively, listening on every address of the container, on port 8000."""
    words, environment = engine_cpu.argv(VllmCpu("0.32.0", Path("/v/bin/python"), Path("/m")))

    assert words[:3] == ["/v/bin/vllm", "serve", "/m"]
    assert words[words.index("--host") + 1] == "0.0.0.0"
    assert words[words.index("--port") + 1] == "8000"
    assert environment["HF_HUB_OFFLINE"] == "1"
