"""The canary's request on the simulated engine: it sees what /health does not."""

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from exporters.canary.access import accessor, tls_contexts
from exporters.canary.request import Asker
from exporters.canary.server import client_session
from exporters.canary.targets import Target
from exporters.engine.config import load_config

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]


@pytest.fixture
async def sim() -> AsyncIterator[tuple[str, str]]:
    """Start `python -m sim` on free ports; give the URLs of its API and its control port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sim", "--port", "0", cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout is not None
    async with asyncio.timeout(60):
        banner = ""
        while len(urls := re.findall(r"http://[0-9.]+:[0-9]+", banner)) < 2:
            line = (await process.stdout.readline()).decode()
            assert line, f"the simulated engine ended: {banner}"
            banner += line
    yield urls[0], urls[1]
    process.terminate()
    await process.communicate()


@pytest.mark.parametrize("api", ["completions", "chat"])
async def test_a_hung_and_a_sleeping_engine_fail_the_canary_alone(sim: tuple[str, str], api: str) -> None:
    """Healthy: ok. Hung or asleep while idle: a timeout, though /health says 200. Healed: ok again."""
    url, control = sim
    target, config = Target(url), load_config()
    async with client_session() as session, aiohttp.ClientSession() as other:
        access = accessor(target, config, tls_contexts(config))
        asker = Asker(session, access, 2.0, "chat" if api == "chat" else "completions")
        for scenario, result in [
            ("healthy", "ok"),
            ("hang", "timeout"),
            ("healthy", "ok"),
            ("asleep", "timeout"),
        ]:
            async with other.post(f"{control}/sim/scenario", json={"name": scenario}) as switched:
                assert switched.status == 200
            outcome = await asker.ask()
            assert outcome.key == (result, "200"), (scenario, outcome.detail)
            async with other.get(f"{url}/health") as health:
                assert health.status == 200
