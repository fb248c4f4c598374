"""The exporter as it is served: a probe's answer, versions, refusals, tokens, own endpoints."""

import asyncio

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from exporters.engine.config import Config
from exporters.engine.server import TIMEOUT_HEADER, allowed_time
from exporters.engine.targets import TargetRefused
from tests.exporters.engine.live import ALLOW, REASONS, RUNNING, config, engine, exporter, probe, reason


async def test_a_real_page_is_served(page, capture):
    """A recording behind a real server: its numbers, its version, how the probe went."""
    body = capture("vllm-0.32.0-cpu-overload_008")
    async with engine(body) as (target, seen), exporter() as client:
        answer = await probe(client, page, target)
    assert reason(answer) is None
    assert answer.one("llm_requests_running", model="tiny", dp_rank="0") == 8
    assert answer.labels("llm_engine_info") == [
        {"model": "tiny", "engine": "vllm", "version": "0.32.0", "simulated": "false"}
    ]
    assert answer.one("llm_probe_body_bytes") == 57546
    engine_samples = [s for s in answer.samples if not s.name.startswith(("llm_probe_", "llm_engine_info"))]
    assert answer.one("llm_probe_series") == len(engine_samples)
    assert 0 < answer.one("llm_probe_duration_seconds") < 10
    assert answer.one("llm_probe_http_status_code") == 200
    assert [request.path for request in seen] == ["/metrics", "/version"]
    assert seen[0].headers["Accept"].startswith("text/plain;version=0.0.4")


async def test_the_version_is_asked_once_a_process(page):
    """A page that states the process's start is asked again only after a restart."""
    start = b"# x\nprocess_start_time_seconds %d\n"
    pages = [RUNNING + start % 1, RUNNING + start % 1, RUNNING + start % 2]
    versions = iter(["0.32.0", "0.33.0"])
    asked = []

    async def metrics(request):
        return web.Response(body=pages.pop(0))

    async def version(request):
        asked.append(request.path)
        return web.json_response({"version": next(versions)})

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/version", version)])
    async with TestServer(app) as server, exporter() as client:
        got = [await probe(client, page, f"127.0.0.1:{server.port}") for _ in range(3)]
    assert [answer.labels("llm_engine_info")[0]["version"] for answer in got] == [
        "0.32.0",
        "0.32.0",
        "0.33.0",
    ]
    assert len(asked) == 2


@pytest.mark.parametrize(
    "version", ["not json", "[]", '{"version": 3}', '{"version": "a\\"b"}', "", "[" * 100_000]
)
async def test_a_bad_version_costs_the_label_only(page, version):
    """Whatever /version answers, the metrics are published; the version is unknown."""
    async with engine(version=version) as (target, _), exporter() as client:
        answer = await probe(client, page, target)
    assert reason(answer) is None
    assert answer.labels("llm_engine_info")[0]["version"] == "unknown"


async def test_a_hanging_version_costs_half_the_time_left(page):
    """/version that never answers: the probe still succeeds within its time."""

    async def metrics(request):
        return web.Response(body=RUNNING)

    async def hang(request):
        await asyncio.sleep(30)

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/version", hang)])
    async with TestServer(app) as server, exporter() as client:
        answer = await probe(client, page, f"127.0.0.1:{server.port}", headers={TIMEOUT_HEADER: "1.5"})
    assert reason(answer) is None
    assert answer.labels("llm_engine_info")[0]["version"] == "unknown"


async def test_a_simulated_engine_is_marked(page):
    """An engine that says it is simulated is published as such."""
    async with (
        engine(version='{"version": "0.32.0", "simulated": true}') as (target, _),
        exporter() as client,
    ):
        answer = await probe(client, page, target)
    assert answer.labels("llm_engine_info")[0]["simulated"] == "true"


@pytest.mark.parametrize(
    ("params", "mend"),
    [
        ({}, "ask for /probe?target="),
        ({"target": "http://169.254.169.254/"}, "link-local"),
        ({"target": "http://192.0.2.1:80"}, "add an entry to `allow`"),
        ({"target": "http://a:b@127.0.0.1:1"}, "user info"),
        ({"target": "http://127.0.0.1:1/sleep"}, "the path is the adapter's"),
        ({"target": "127.0.0.1:1", "module": "nope"}, "no module 'nope'"),
    ],
)
async def test_what_is_asked_wrongly_is_a_400(params, mend):
    """A target that may not be read is the asker's fault, and the text says what to change."""
    async with exporter() as client, client.get("/probe", params=params) as response:
        assert response.status == 400
        assert mend in await response.text()


async def test_a_name_that_turns_to_a_denied_address_is_refused(page):
    """The name is resolved once: the address that was checked is the one connected to."""
    asked = []

    async def resolve(host, port):
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    async with engine() as (target, seen), exporter(resolve=resolve) as client:
        port = target.rpartition(":")[2]
        assert reason(await probe(client, page, f"http://rebound.test:{port}")) is None
        async with client.get("/probe", params={"target": f"http://rebound.test:{port}"}) as response:
            assert response.status == 400
    assert asked == ["rebound.test", "rebound.test"]
    assert {request.headers["Host"] for request in seen} == {f"rebound.test:{port}"}


async def test_a_module_s_own_list_keeps_its_token_at_home(page, tmp_path):
    """The token is sent where the module's list allows, and the module reads nothing else."""
    (tmp_path / "token").write_text("secret-token\n")
    async with engine() as (target, seen):
        port = int(target.rpartition(":")[2])
        own = [{"scheme": "http", "host": "127.0.0.1", "ports": [port]}]
        module = {"bearer_token_file": str(tmp_path / "token"), "allow": own}
        settings = Config.model_validate({"allow": ALLOW, "modules": {"default": {}, "m": module}})
        async with exporter(settings) as client:
            assert reason(await probe(client, page, target, module="m")) is None
            assert seen[0].headers["Authorization"] == "Bearer secret-token"
            await probe(client, page, target)
            assert "Authorization" not in seen[-1].headers
            async with client.get("/probe", params={"target": "127.0.0.1:1", "module": "m"}) as response:
                assert response.status == 400


@pytest.mark.parametrize("content", [None, "", "two\nlines", "t\u00e9"])
async def test_a_token_that_cannot_be_read_is_said(page, tmp_path, content):
    """Missing, empty or unusable: the probe fails for `credentials` and nothing is sent."""
    if content is not None:
        (tmp_path / "token").write_text(content, encoding="utf-8")
    async with (
        engine() as (target, seen),
        exporter(config(bearer_token_file=str(tmp_path / "token"))) as client,
    ):
        assert reason(await probe(client, page, target)) == "credentials"
    assert seen == []


async def test_own_endpoints(page):
    """Healthy, ready, an index, and own metrics with every result there from the start."""
    async with engine() as (target, _), exporter() as client:
        for path in ("/-/healthy", "/-/ready", "/"):
            async with client.get(path) as response:
                assert response.status == 200
        await probe(client, page, target)
        async with client.get("/probe") as response:
            assert response.status == 400
        async with client.get("/metrics") as response:
            own = page(await response.text())
            assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    probes = "inferwatch_engine_exporter_probes_total"
    assert own.one(probes, result="success") == 1
    assert {labels["result"] for labels in own.labels(probes)} == REASONS | {"success"}
    assert own.one("inferwatch_engine_exporter_requests_refused_total") == 1
    assert own.one("inferwatch_engine_exporter_translate_seconds_count") == 1
    assert own.one("inferwatch_engine_exporter_label_cache_entries") == 1


def test_the_time_allowed():
    """10 s less 0.5 s; never less than half; no header, no bound of its own; nonsense is refused."""
    assert allowed_time("10", 0.5) == 9.5
    assert allowed_time("0.6", 0.5) == 0.3
    assert allowed_time(None, 0.5) == float("inf")
    for text in ("x", "0", "-1", "nan", "inf", ""):
        with pytest.raises(TargetRefused, match="not a positive number"):
            allowed_time(text, 0.5)


async def test_a_bad_timeout_header_is_a_400():
    """The header is the asker's: it is told what is wrong with it."""
    async with (
        exporter() as client,
        client.get("/probe", params={"target": "127.0.0.1:1"}, headers={TIMEOUT_HEADER: "x"}) as response,
    ):
        assert response.status == 400


async def test_no_cookie_and_no_proxy_is_kept(page, monkeypatch):
    """A cookie set by an engine is not sent back, and a proxy in the environment is not used."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with engine(headers={"Set-Cookie": "a=b"}) as (target, seen), exporter() as client:
        for _ in range(2):
            assert reason(await probe(client, page, target)) is None
    assert not any("Cookie" in request.headers for request in seen)
    assert isinstance(client.session, aiohttp.ClientSession)
