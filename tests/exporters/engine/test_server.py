"""The exporter as it is served: real sockets on both sides, engines that behave and engines that do not."""

import asyncio
import gzip
import socket
import ssl
import time
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from exporters.engine.config import Config
from exporters.engine.server import TIMEOUT_HEADER, allowed_time, build_app
from exporters.engine.targets import TargetRefused

ALLOW = [{"scheme": "http", "host": "127.0.0.0/8", "ports": ["1-65535"]}]
REASONS = {
    "credentials", "dns", "refused", "unreachable", "tls", "timeout", "http", "too_large", "malformed",
    "no_engine_metrics",
}  # fmt: skip
RUNNING = b'vllm:num_requests_running{engine="0",model_name="m"} 3.0\n'


def config(**module):
    """Loopback allowed; a default module with these settings."""
    return Config.model_validate({"allow": ALLOW, "modules": {"default": module}})


@asynccontextmanager
async def exporter(settings=None, **kwargs):
    """A running exporter's client."""
    async with TestClient(TestServer(build_app(settings or config(), **kwargs))) as client:
        yield client


@asynccontextmanager
async def engine(body=RUNNING, version='{"version": "0.32.0"}', headers=None, status=200):
    """A running engine: its address and the requests it got."""
    seen = []

    async def metrics(request):
        seen.append(request)
        return web.Response(body=body, status=status, headers=headers or {"Content-Type": "text/plain"})

    async def answer_version(request):
        seen.append(request)
        return web.Response(text=version)

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/version", answer_version)])
    async with TestServer(app) as server:
        yield f"127.0.0.1:{server.port}", seen


@asynccontextmanager
async def raw(handler):
    """A server that speaks whatever `handler(reader, writer)` speaks."""
    server = await asyncio.start_server(handler, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def probe(client, page, target, headers=None, **params):
    """Probe and read the answer back."""
    async with client.get("/probe", params={"target": target, **params}, headers=headers) as response:
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        return page(await response.text())


def reason(answer):
    """The reason a probe failed for; every reason has its series, at most one is 1."""
    flags = {labels["reason"]: value for labels, value in zip(
        answer.labels("llm_probe_failure"), answer.values("llm_probe_failure"), strict=True
    )}  # fmt: skip
    assert set(flags) == REASONS
    failed = [name for name, value in flags.items() if value == 1]
    assert answer.one("llm_probe_success") == (0 if failed else 1)
    assert len(failed) <= 1
    if failed:
        assert {s.name for s in answer.samples if not s.name.startswith("llm_probe_")} == set()
    return failed[0] if failed else None


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


async def test_nothing_listens(page):
    """A refused connection says that nothing runs there; no engine series is published."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with exporter() as client:
        answer = await probe(client, page, f"127.0.0.1:{port}")
    assert reason(answer) == "refused"
    assert answer.values("llm_probe_http_status_code") == []
    assert answer.text.startswith("# probe failed: refused: ")


@pytest.mark.parametrize("status", [301, 302, 401, 404, 500, 503])
async def test_a_status_other_than_200_is_http(page, status):
    """The status is published; a redirect is not followed."""
    async with (
        engine(status=status, headers={"Location": "/elsewhere"}) as (target, seen),
        exporter() as client,
    ):
        answer = await probe(client, page, target)
    assert reason(answer) == "http"
    assert answer.one("llm_probe_http_status_code") == status
    assert [request.path for request in seen] == ["/metrics"]


@pytest.mark.parametrize(
    ("body", "why"),
    [(b"", "no_engine_metrics"), (b"<html>login</html>", "no_engine_metrics"), (RUNNING[:-1], "malformed")],
)
async def test_a_200_can_fail(page, body, why):
    """Nothing of an engine, or a page that is cut off."""
    async with engine(body) as (target, _), exporter() as client:
        assert reason(await probe(client, page, target)) == why


async def test_limits_on_bytes_and_series(page):
    """One byte or one series more than the module allows fails the probe."""
    body = RUNNING + b"# " + b"x" * (2048 - len(RUNNING) - 3) + b"\n"
    async with engine(body) as (target, _):
        async with exporter(config(max_body_bytes=2048)) as client:
            assert reason(await probe(client, page, target)) is None
        async with exporter(config(max_body_bytes=2047)) as client:
            assert reason(await probe(client, page, target)) == "too_large"
        async with exporter(config(max_series=2)) as client:
            assert reason(await probe(client, page, target)) is None
        async with exporter(config(max_series=1)) as client:
            assert reason(await probe(client, page, target)) == "too_large"


async def test_compressed_answers(page):
    """gzip is read though not asked for; cut off it is malformed; a bomb is stopped at the limit."""
    packed = gzip.compress(RUNNING)
    bomb = gzip.compress(b"#" * 200_000_000, 1)
    zipped = {"Content-Encoding": "gzip"}
    async with exporter(config(max_body_bytes=100_000)) as client:
        async with engine(packed, headers=zipped) as (target, _):
            assert (await probe(client, page, target)).one("llm_requests_running") == 3
        async with engine(packed[:-9], headers=zipped) as (target, _):
            assert reason(await probe(client, page, target)) == "malformed"
        async with engine(b"not gzip", headers=zipped) as (target, _):
            assert reason(await probe(client, page, target)) == "malformed"
        async with engine(RUNNING, headers={"Content-Encoding": "br"}) as (target, _):
            assert reason(await probe(client, page, target)) == "malformed"
        async with engine(bomb, headers=zipped) as (target, _):
            answer = await probe(client, page, target)
    assert reason(answer) == "too_large"
    assert answer.one("llm_probe_body_bytes") == 100_001


async def test_time_is_prometheus_s_less_the_offset(page):
    """A body that drips, and one that never starts, end within the scrape's own time."""

    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"#")
            await asyncio.sleep(0.05)

    async def silent(reader, writer):
        await reader.read()
        writer.close()

    for handler in (drip, silent):
        async with raw(handler) as target, exporter() as client:
            begun = time.monotonic()
            answer = await probe(client, page, target, headers={TIMEOUT_HEADER: "0.9"})
            assert time.monotonic() - begun < 0.9
        assert reason(answer) == "timeout"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "unreachable"),
        (b"SSH-2.0-x\r\n\r\n", "http"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nvllm:", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nvllm", "malformed"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", "http"),
    ],
)
async def test_servers_that_break_off_or_talk_nonsense(page, answer, why):
    """Each is a failed probe with its own reason, none is a crash."""

    async def handler(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with raw(handler) as target, exporter() as client:
        assert reason(await probe(client, page, target)) == why


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


async def test_sick_targets_do_not_hold_up_healthy_ones(page, capture):
    """Fifty healthy probes finish while fifty hang."""

    async def silent(reader, writer):
        await reader.read()
        writer.close()

    healthy = engine(capture("vllm-0.32.0-cpu-metrics_light"))
    async with raw(silent) as sick, healthy as (target, _), exporter() as client:
        long = {TIMEOUT_HEADER: "20"}
        hanging = [asyncio.create_task(probe(client, page, sick, headers=long)) for _ in range(50)]
        answers = await asyncio.gather(*(probe(client, page, target) for _ in range(50)))
        assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
    assert [reason(answer) for answer in answers] == [None] * 50
    assert {answer.one("llm_prompt_tokens_total") for answer in answers} == {315489}


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


@asynccontextmanager
async def tls_engine(folder, client_ca=None):
    """An engine behind TLS with `server.pem`; asks for a client certificate if `client_ca` is given."""

    async def metrics(request):
        return web.Response(body=RUNNING)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.pem", folder / "server-key.pem")
    if client_ca:
        context.load_verify_locations(folder / client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    app = web.Application()
    app.add_routes([web.get("/metrics", metrics)])
    server = TestServer(app)
    await server.start_server(ssl=context)
    try:
        yield server.port
    finally:
        await server.close()


def tls_config(**module):
    """https to loopback and to engine.test; a default module with these settings."""
    allow = [
        {"scheme": "https", "host": host, "ports": ["1-65535"]} for host in ("127.0.0.0/8", "engine.test")
    ]
    return Config.model_validate({"allow": allow, "modules": {"default": module}})


async def to_loopback(host, port):
    """A resolver that answers loopback for every name."""
    return ["127.0.0.1"]


async def test_an_engine_behind_tls(page, tmp_path, certificate):
    """Its certificate must be trusted and carry the name: the target's host, or the module's server_name."""
    certificate(tmp_path, "server")
    ca = str(tmp_path / "server.pem")
    async with tls_engine(tmp_path) as port:
        async with exporter(tls_config(ca_file=ca), resolve=to_loopback) as client:
            assert (
                reason(await probe(client, page, f"https://engine.test:{port}")) == "tls"
            )  # made for localhost
        async with exporter(tls_config(ca_file=ca, server_name="localhost"), resolve=to_loopback) as client:
            assert reason(await probe(client, page, f"https://engine.test:{port}")) is None
            assert reason(await probe(client, page, f"https://127.0.0.1:{port}")) is None
        async with exporter(tls_config(server_name="localhost")) as client:
            assert (
                reason(await probe(client, page, f"https://127.0.0.1:{port}")) == "tls"
            )  # issuer not trusted
        async with exporter(tls_config(ca_file=str(tmp_path / "gone.pem"))) as client:
            assert reason(await probe(client, page, f"https://127.0.0.1:{port}")) == "credentials"


async def test_an_engine_that_wants_a_client_certificate(page, tmp_path, certificate):
    """The module's certificate is shown; without it the probe fails, for whatever the handshake says."""
    certificate(tmp_path, "server")
    certificate(tmp_path, "client")
    files = {"ca_file": str(tmp_path / "server.pem"), "server_name": "localhost"}
    pair = {"cert_file": str(tmp_path / "client.pem"), "key_file": str(tmp_path / "client-key.pem")}
    async with tls_engine(tmp_path, client_ca="client.pem") as port:
        target = f"https://127.0.0.1:{port}"
        async with exporter(tls_config(**files, **pair)) as client:
            assert reason(await probe(client, page, target)) is None
        async with exporter(tls_config(**files)) as client:
            assert reason(await probe(client, page, target)) in ("tls", "unreachable")


async def test_plain_http_to_a_tls_port_and_back(page, tmp_path, certificate):
    """The wrong scheme is a failed probe with a reason, either way round."""
    certificate(tmp_path, "server")
    async with tls_engine(tmp_path) as port, exporter() as client:
        assert reason(await probe(client, page, f"http://127.0.0.1:{port}")) in ("http", "unreachable")
    async with engine() as (target, _), exporter(tls_config()) as client:
        assert reason(await probe(client, page, f"https://{target}")) == "tls"


async def test_a_huge_page_does_not_stop_the_others(page):
    """Two megabytes of distinct series are refused in a thread while other probes are answered."""
    line = b'vllm:num_requests_running{engine="%d",model_name="m"} 1\n'
    huge = b"".join(line % rank for rank in range(36_000))
    async with engine(huge) as (large, _), engine() as (small, _), exporter() as client:
        slow = asyncio.create_task(probe(client, page, large))
        while not slow.done():
            assert reason(await probe(client, page, small)) is None
        assert reason(await slow) == "too_large"
