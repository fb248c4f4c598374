"""Every page that an exporter of ours serves: its content type, its grammar, each family and series once."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from exporters.engine.config import Config
from exporters.engine.server import build_app

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "fixtures" / "engine" / "cases"
WHERE = os.pathsep.join((os.environ.get("PATH", ""), str(Path.home() / ".cache" / "inferwatch" / "bin")))
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(\{.*\})? \S+")


def case(number, name):
    """A file of a case."""
    (folder,) = CASES.glob(f"{number}-*")
    return (folder / name).read_bytes()


def family_of(name, typed):
    """The family that a sample belongs to: its own name, or the one whose histogram or summary it is part of."""
    for ending in ("", "_bucket", "_sum", "_count"):
        if name.endswith(ending) and typed.get(stem := name.removesuffix(ending)) is not None:
            return stem
    return None


def faults(text):
    """What is wrong with a page as a whole; promtool does not notice a series that stands twice."""
    found = [] if text.endswith("\n") else ["no final newline"]
    typed, seen, closed, now = {}, set(), set(), None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            if name in typed:
                found.append(f"{name}: TYPE twice")
            typed[name] = kind
        elif line and not line.startswith("#"):
            matched = SAMPLE.fullmatch(line)
            if matched is None:
                found.append(f"{line}: no sample")
                continue
            family = family_of(matched[1], typed)
            if family is None:
                found.append(f"{matched[1]}: no TYPE before it")
            if family != now:
                closed.add(now)
                if family in closed:
                    found.append(f"{family}: its samples are not together")
                now = family
            if matched.groups() in seen:
                found.append(f"{matched[1]}{matched[2]}: twice")
            seen.add(matched.groups())
    return found


def test_the_check_sees_what_is_wrong_with_the_case():
    """Case A67: each of the three malformed pages has its fault, the regrouped one has none."""
    assert faults(case("A67", "dup_type.txt").decode()) == ["gpu_temp: TYPE twice"]
    assert faults(case("A67", "no_newline.txt").decode()) == ["no final newline"]
    assert faults(case("A67", "dup_sample.txt").decode()) == ['b{x="1"}: twice']
    assert faults(json.loads(case("A67", "expected.json"))["merged"]) == []
    assert faults('# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\na{x="1"} 2\n') == [
        "a: its samples are not together"
    ]


def arguments(name, folder):
    """The command line of an exporter, with what it needs lying in `folder`."""
    if name == "canary":
        (folder / "targets.json").write_text('[{"targets": ["127.0.0.1:1"], "labels": {"service": "llm"}}]')
        return ["canary", "--targets", str(folder / "targets.json")]
    if name == "analysis":
        return ["analysis", "--prometheus", "http://127.0.0.1:1"]
    if name == "drift":
        (folder / "drift.yml").write_text(yaml.safe_dump({"ingest": {"listen": "127.0.0.1:0"}}))
        return ["drift", "--config", str(folder / "drift.yml")]
    if name == "node":
        return ["node", "--nvml-recording", str(ROOT / "tests/fixtures/node/nvml-h200.json")]
    return [name]


@pytest.mark.parametrize("name", ["engine", "canary", "analysis", "drift", "node"])
async def test_the_page_of_an_exporter_is_one_that_prometheus_takes(name, tmp_path):
    """Cases A24 and A67, on the process as it is started: header, `promtool check metrics`, nothing twice."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "exporters", *arguments(name, tmp_path), "--listen", "127.0.0.1:0"),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said = b""
        while not (found := re.search(rb"(?<!ingest: )listening on (http://\S+)", said)):
            line = await asyncio.wait_for(process.stderr.readline(), 60)
            assert line, said.decode()
            said += line
        async with (
            aiohttp.ClientSession() as session,
            session.get(found[1].decode() + "/metrics") as response,
        ):
            text, kind = await response.text(), response.headers["Content-Type"]
    finally:
        process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.communicate(), 30)

    assert kind == json.loads(case("A24", "expected.json"))["header"]
    assert faults(text) == []
    families = list(text_string_to_metric_families(text))
    assert len(families) > 3
    # case A71: the target's labels are Prometheus' to set, but for exporters that speak of other targets
    own = {label for family in families for sample in family.samples for label in sample.labels}
    assert "job" not in own and ("instance" not in own or name in ("canary", "analysis", "node"))
    promtool = shutil.which("promtool", path=WHERE)
    assert promtool, "promtool is neither on PATH nor in ~/.cache/inferwatch/bin; `make up` fetches it"
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text.encode(), capture_output=True, check=False
    )
    assert (done.returncode, (done.stdout + done.stderr).decode()) == (0, "")


@pytest.mark.parametrize("name", ["response_bad.http", "response_good.http"])
async def test_an_engine_without_a_content_type_is_read(name):
    """Case A24: Prometheus 3 would refuse the first answer; our exporter reads both and answers with a header."""
    engine = b'vllm:num_requests_running{engine="0",model_name="m"}'
    answer = case("A24", name).replace(b"up_a", engine)

    async def speak(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(speak, "127.0.0.1", 0)
    allow = [{"scheme": "http", "host": "127.0.0.0/8", "ports": ["1-65535"]}]
    target = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, TestClient(TestServer(build_app(Config.model_validate({"allow": allow})))) as client:
        response = await client.get("/probe", params={"target": target})
        text = await response.text()

    assert response.headers["Content-Type"] == json.loads(case("A24", "expected.json"))["header"]
    assert 'llm_requests_running{model="m",dp_rank="0"} 1\n' in text
    assert faults(text) == []
