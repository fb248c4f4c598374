"""What every exporter serves: the listen address, own endpoints, start and stop as a real process."""

import asyncio
import os
import re
import signal
import sys
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from exporters.web import Listen, ListenError, own_routes, parse_listen

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("text", "listen"),
    [
        ("127.0.0.1:9480", Listen("127.0.0.1", 9480)),
        ("[::1]:0", Listen("::1", 0)),
        ("host:1", Listen("host", 1)),
    ],
)
def test_addresses_are_read(text, listen):
    """HOST:PORT, IPv6 in brackets."""
    assert parse_listen(text) == listen


@pytest.mark.parametrize(
    "text", ["", "9480", ":9480", "host", "host:", "host:x", "host:70000", "::1:80", "[]:1"]
)
def test_other_addresses_are_refused_with_an_example(text):
    """The error shows what to write."""
    with pytest.raises(ListenError, match="for example"):
        parse_listen(text)


async def test_ready_follows_the_exporter_and_healthy_does_not():
    """Not ready is 503; healthy is 200 all along; /metrics is the registry's."""
    registry = CollectorRegistry()
    Counter("x_total", "An x.", registry=registry).inc(2)
    ready = []
    app = web.Application()
    app.add_routes(own_routes(registry, lambda: bool(ready)))
    async with TestClient(TestServer(app)) as client:
        assert (await client.get("/-/ready")).status == 503
        assert (await client.get("/-/healthy")).status == 200
        ready.append(1)
        assert (await client.get("/-/ready")).status == 200
        answer = await client.get("/metrics")
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        samples = {
            s.name: s.value for f in text_string_to_metric_families(await answer.text()) for s in f.samples
        }
    assert samples["x_total"] == 2


async def start(*arguments):
    """An exporter process and its base URL, as it states it on stderr."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "exporters", *arguments), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    while line := await asyncio.wait_for(process.stderr.readline(), 60):
        if found := re.search(rb"listening on (\S+)", line):
            return process, found[1].decode()
    raise AssertionError(f"ended with {await process.wait()} before it listened")


async def test_the_process_serves_and_stops_cleanly():
    """Started by its command line on a free port, it answers, and ends with 0 on SIGTERM."""
    process, url = await start("engine", "--listen", "127.0.0.1:0")
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(url + "/-/ready") as response:
                assert response.status == 200
            async with session.get(url + "/metrics") as response:
                text = await response.text()
                assert "process_resident_memory_bytes" in text
                assert "_created" not in text
            async with session.get(url + "/probe", params={"target": "127.0.0.1:1"}) as response:
                assert "llm_probe_success 0" in await response.text()
    finally:
        os.kill(process.pid, signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 0


async def ended(*arguments):
    """Status and stderr of a command line that is not to serve."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "exporters", *arguments), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, text = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, text.decode()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ([], "write one of engine, canary"),
        (["nope"], "NAME is 'nope'"),
        (["engine", "--config", "/nowhere.yml"], "/nowhere.yml: cannot be read"),
        (["engine", "--listen", "9480"], "for example 127.0.0.1:9480"),
        (["engine", "--timeout-offset", "90"], "write seconds from 0 to 60"),
        (["engine", "--web-config", "/nowhere.yml"], "/nowhere.yml: cannot be read"),
    ],
)
async def test_a_command_line_that_cannot_be_used_ends_with_2(arguments, part):
    """One line says what is wrong; nothing is served."""
    status, text = await ended(*arguments)
    assert status == 2
    assert part in text
    assert "Traceback" not in text


async def test_check_reads_the_files_and_ends():
    """--check is 0 on the shipped file."""
    assert (await ended("engine", "--check"))[0] == 0
