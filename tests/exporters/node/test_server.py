"""The agent's command line and its endpoints."""

from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from exporters.node.server import main, node_app


async def test_endpoints(drive: Any, phase: Any) -> None:
    """Metrics in the text format with a content type that Prometheus 3 takes; health and readiness."""
    app = node_app(drive(phase("idle")).agent)
    async with TestClient(TestServer(app)) as client:
        metrics = await client.get("/metrics")
        healthy = await client.get("/-/healthy")
        text = await metrics.text()

    assert metrics.status == 200
    assert metrics.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'llm_node_nvml_state{state="ok"} 1' in text
    assert 'llm_node_info{node="node-a",source="recording",driver_version="580.159.04"' in text
    assert healthy.status == 200


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--listen", "9481"], "HOST:PORT"),
        (["--proc-root", "/does/not/exist"], "--proc-root /does/not/exist: not a folder"),
        (["--nvml-recording", "/does/not/exist.json"], "/does/not/exist.json: cannot be read"),
        (
            ["--engine-instance", "http://vllm"],
            "--engine-instance 'http://vllm': write {port} once",
        ),
        (["--config", "/does/not/exist.yaml"], "/does/not/exist.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_used_is_named(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 and one line: which option, what value, what to do."""
    assert main(arguments) == 2
    assert words in capsys.readouterr().err


def test_a_configuration_with_a_broken_pattern_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names file, key and value."""
    file = tmp_path / "node.yaml"
    file.write_text("engines: [{instance: 'a:1', match: '('}]\n")

    assert main(["--config", str(file)]) == 2
    assert f"{file}: engines[0].match: not a regular expression" in capsys.readouterr().err


def test_a_recording_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON, yet no devices."""
    file = tmp_path / "nvml.json"
    file.write_text("{}")

    assert main(["--nvml-recording", str(file)]) == 2
    assert "neither `devices` nor `frames`" in capsys.readouterr().err
