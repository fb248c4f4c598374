"""The handles of a stage: service discovery, reloads that are taken or refused, processes that are killed."""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from inferwatch.scenarios.faults import BrokenConfig, BrokenRule, Nothing, SampleLimit
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.stage import Engine, Stage
from inferwatch.stack import processes, state
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec


@pytest.fixture
def reader() -> Iterator[ThreadingHTTPServer]:
    """A server whose reload says what `server.status` says."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(self.server.status)  # type: ignore[attr-defined]  # set below
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.status = 200  # type: ignore[attr-defined]  # what the next reloads answer
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def stage(tmp_path: Path, reader: ThreadingHTTPServer) -> Stage:
    """A stage of two services with two engines each, whose Prometheus is the reader."""
    settings = default_settings(run_dir=tmp_path)
    settings.prometheus_config.parent.mkdir(parents=True)
    settings.prometheus_config.write_text("scrape_configs:\n- job_name: a\n")
    prometheus = Service(
        "prometheus",
        (),
        f"http://127.0.0.1:{reader.server_port}",
        "/",
        config_files=(settings.prometheus_config,),
    )
    engines = {
        name: tuple(Engine(f"http://{name}-{n}:1", "http://127.0.0.1:9") for n in range(2))
        for name in ("one", "two")
    }
    return Stage("watchers", settings, slo_spec.load(), (), {"prometheus": prometheus}, engines)


def targets(stage: Stage) -> dict[str, list[str]]:
    """Service -> engines in service discovery."""
    groups = json.loads(stage.settings.targets_file.read_text())
    return {group["labels"]["service"]: group["targets"] for group in groups}


def test_a_removed_engine_leaves_discovery_and_comes_back(stage: Stage) -> None:
    """Only the first engine of that service goes."""
    stage.set_watched("one", False)
    assert targets(stage) == {"one": ["http://one-1:1"], "two": ["http://two-0:1", "http://two-1:1"]}
    stage.set_watched("one", True)
    assert targets(stage)["one"] == ["http://one-0:1", "http://one-1:1"]


def test_engines_without_the_exporter_have_a_file_of_their_own(stage: Stage) -> None:
    """HOST:PORT, as Prometheus takes them; neither the exporter nor the canary is told of them."""
    stage.rows = (Row("one", Nothing(None)), Row("two", Nothing(None), direct=True))
    stage.write_targets()

    assert targets(stage) == {"one": ["http://one-0:1", "http://one-1:1"]}
    assert json.loads(stage.direct_file.read_text()) == [
        {"targets": ["two-0:1", "two-1:1"], "labels": {"service": "two"}}
    ]


def test_a_broken_rule_is_deployed_and_taken_back(stage: Stage, reader: ThreadingHTTPServer) -> None:
    """The file is there while the fault is on; a reader that refuses it is an error that names the answer."""
    row, fault = Row("rule", BrokenRule()), BrokenRule()
    fault.begin(stage, row)
    assert yaml.safe_load((stage.rules_dir / "broken.yaml").read_text())["groups"][0]["name"] == "broken"
    fault.end(stage, row)
    assert not (stage.rules_dir / "broken.yaml").exists()
    reader.status = 400  # type: ignore[attr-defined]  # the reader is ours
    with pytest.raises(StackError, match="HTTP 400 to a reload"):
        fault.begin(stage, row)


def test_a_broken_configuration_must_be_refused(stage: Stage, reader: ThreadingHTTPServer) -> None:
    """A reader that takes it would show nothing; the good one is put back as it was."""
    fault, row = BrokenConfig("prometheus"), Row("config", BrokenConfig("prometheus"))
    before = stage.settings.prometheus_config.read_text()
    reader.status = 500  # type: ignore[attr-defined]  # the reader is ours
    fault.begin(stage, row)
    assert "no_such_key" in stage.settings.prometheus_config.read_text()
    reader.status = 200  # type: ignore[attr-defined]  # the reader is ours
    fault.end(stage, row)
    assert stage.settings.prometheus_config.read_text() == before
    with pytest.raises(StackError, match="HTTP 200 to a reload"):
        fault.begin(stage, row)


def test_a_limited_job_comes_and_goes(stage: Stage) -> None:
    """It is added beside the others, and only it is removed."""
    fault, row = SampleLimit("limited"), Row("samples", SampleLimit("limited"))
    fault.begin(stage, row)
    jobs = yaml.safe_load(stage.settings.prometheus_config.read_text())["scrape_configs"]
    assert [(job["job_name"], job.get("sample_limit")) for job in jobs] == [("a", None), ("limited", 1)]
    fault.end(stage, row)
    jobs = yaml.safe_load(stage.settings.prometheus_config.read_text())["scrape_configs"]
    assert jobs == [{"job_name": "a"}]


def test_a_killed_process_is_started_again(stage: Stage) -> None:
    """It is gone at once, another process has its place in the state file, and a second start does nothing."""
    service = Service("sleeper", (sys.executable, "-c", "import time; time.sleep(60)"), "http://x", "/")
    stage.services["sleeper"] = service
    record = processes.start(service, stage.settings.logs_dir)
    state.save(stage.settings.state_file, state.State(1, None, {"sleeper": record}))
    stage.signal("sleeper", signal.SIGKILL)
    assert processes.find(record) is None
    with pytest.raises(StackError, match="does not run any more"):
        stage.signal("sleeper", signal.SIGKILL)
    stage.revive("sleeper")
    again = state.load(stage.settings.state_file).records["sleeper"]
    stage.revive("sleeper")
    try:
        assert again.pid != record.pid
        assert state.load(stage.settings.state_file).records["sleeper"] == replace(again)
    finally:
        processes.stop(again)


def test_an_engine_that_does_not_answer_is_said(stage: Stage) -> None:
    """Nothing listens at the control port."""
    with pytest.raises(StackError, match="does not answer"):
        stage.switch("one", "hang", {})
