"""The canary as a process: its command line, its endpoints, its end."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from exporters.canary.server import main

ROOT = Path(__file__).parents[3]
StartCanary = Callable[..., Awaitable[str]]


@pytest.fixture
async def start_canary() -> AsyncIterator[StartCanary]:
    """Start `python -m exporters canary` on a free port; give its URL; end it by SIGTERM with the test."""
    running: list[asyncio.subprocess.Process] = []

    async def start(targets: Path) -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "exporters", "canary", "--targets", str(targets), "--listen", "127.0.0.1:0",
            cwd=ROOT, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        running.append(process)
        assert process.stderr is not None
        async with asyncio.timeout(60):
            while line := (await process.stderr.readline()).decode():
                if found := re.search(r"listening on (http://\S+)", line):
                    return found[1]
        raise AssertionError("the canary ended before it listened")

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(30):
            await process.communicate()
        assert process.returncode == 0


async def scrape(session: aiohttp.ClientSession, url: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Return /metrics as sample name -> (labels, value)."""
    async with session.get(url + "/metrics") as response:
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        text = await response.text()
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def test_a_process_asks_its_targets_and_shows_them(
    start_engine: Callable[[], Awaitable[Any]], start_canary: StartCanary, tmp_path: Path
) -> None:
    """From the targets file to series with the target's labels; ready since the file was read."""
    engine = await start_engine()
    targets = tmp_path / "engines.json"
    targets.write_text(json.dumps([{"targets": [engine.address], "labels": {"service": "llm"}}]))
    url = await start_canary(targets)
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        while not (await scrape(session, url)).get("llm_canary_success"):
            await asyncio.sleep(0.1)
        seen = await scrape(session, url)
        for path in ("/-/healthy", "/-/ready"):
            async with session.get(url + path) as response:
                assert response.status == 200
    labels = {"instance": engine.address, "service": "llm", "model": "tiny"}
    assert seen["llm_canary_success"] == [(labels, 1)]
    assert (labels | {"result": "ok", "code": "200"}, 1) in seen["llm_canary_requests_total"]
    assert seen["llm_canary_targets"] == [({}, 1)]
    assert seen["llm_canary_targets_file_valid"] == [({}, 1)]
    assert seen["llm_canary_targets_file_errors_total"] == [({}, 0)]


async def test_without_a_usable_file_it_is_healthy_and_not_ready(
    start_canary: StartCanary, tmp_path: Path
) -> None:
    """It waits for the file, and says so in its series."""
    url = await start_canary(tmp_path / "missing.json")
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        while not (seen := await scrape(session, url)).get("llm_canary_targets_file_valid"):
            await asyncio.sleep(0.1)
        async with session.get(url + "/-/healthy") as healthy, session.get(url + "/-/ready") as ready:
            assert (healthy.status, ready.status) == (200, 503)
    assert seen["llm_canary_targets_file_valid"] == [({}, 0)]
    assert seen["llm_canary_targets_file_errors_total"] == [({}, 1)]
    assert "llm_canary_requests_total" not in seen


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--listen", "9482"], "--listen '9482'"),
        (["--config", "no-such.yml"], "no-such.yml"),
        (["--spec", "no-such.yaml"], "no-such.yaml"),
    ],
)
def test_what_cannot_be_used_ends_it_with_a_line(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, and the line names the file or flag."""
    assert main(["--targets", "t.json", *arguments]) == 2
    assert says in capsys.readouterr().err
