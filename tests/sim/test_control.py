"""The control port, and the command that starts it all."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from sim.control import Control


@pytest.fixture
async def control(start) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """A session and the control address of one server."""
    client = await start()
    runner = web.AppRunner(Control(client.server).application())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield client.session, f"http://127.0.0.1:{runner.addresses[0][1]}/sim/scenario"
    await runner.cleanup()


async def test_scenario_is_shown_and_switched(control) -> None:
    """GET names the scenario and what there is; POST changes it and answers the same shape."""
    session, url = control
    async with session.get(url) as response:
        state = await response.json()
    assert (state["simulated"], state["name"], state["model"]) == (True, "healthy", "tiny")
    assert {one["name"] for one in state["scenarios"]} >= {"hang", "down"}
    async with session.post(url, json={"name": "slow_decode", "params": {"factor": 4}}) as response:
        assert (response.status, (await response.json())["params"]) == (200, {"factor": 4})


async def test_control_stays_reachable_while_the_server_is_down(control) -> None:
    """The way back from `down` must not be closed with the port."""
    session, url = control
    async with session.post(url, json={"name": "down"}) as response:
        api = (await response.json())["url"]
    with pytest.raises(aiohttp.ClientConnectorError):
        await session.get(api + "/health")
    async with session.post(url, json={"name": "healthy"}) as response:
        assert response.status == 200
    async with session.get(api + "/health") as response:
        assert response.status == 200


@pytest.mark.parametrize(
    "body, said",
    [
        (b"{", "Expecting"),
        (b"[]", "give a JSON object"),
        (b'{"name": "storm"}', "there are: healthy"),
        (b'{"name": "errors", "params": [1]}', "give a JSON object of numbers"),
        (b'{"name": "errors", "params": {"share": 2}}', "from 0 to 1"),
        (b'{"name": "client_aborts"}', "--self-load"),
    ],
)
async def test_bad_switches_are_refused(control, body: bytes, said: str) -> None:
    """400 with the reason, and the scenario stays."""
    session, url = control
    async with session.post(url, data=body) as response:
        assert response.status == 400
        assert said in (await response.json())["error"]
    async with session.get(url) as response:
        assert (await response.json())["name"] == "healthy"


async def test_the_command_says_that_it_is_simulated_and_where_it_listens() -> None:
    """A real process on picked ports: banner with both addresses, answers, ends on SIGTERM."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sim", "--port", "0", "--scenario", "slow_decode",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    banner = (await process.stdout.readline()).decode()
    assert banner.startswith("SIMULATED inference engine")
    assert "model sim-llama" in banner
    control = banner.rsplit(" ", 1)[1].strip()
    async with aiohttp.ClientSession() as session:
        while True:
            async with session.get(control) as response:
                state = await response.json()
            if state["name"] == "slow_decode":
                break
        async with session.get(state["url"] + "/version") as response:
            assert json.loads(await response.text())["simulated"] is True
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


@pytest.mark.parametrize(
    "flags, said",
    [
        (["--scenario", "storm"], "there are: healthy"),
        (["--num-blocks", "1"], "num_blocks=1: give at least 2"),
        (["--scenario-params", '{"x": 1}'], "no parameter 'x'"),
    ],
)
async def test_bad_flags_are_refused_before_anything_listens(flags: list[str], said: str) -> None:
    """Exit code 2 and a message that names the mend."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "sim", *flags, stderr=asyncio.subprocess.PIPE
    )
    _, stderr = await process.communicate()
    assert process.returncode == 2
    assert said in " ".join(stderr.decode().split())
