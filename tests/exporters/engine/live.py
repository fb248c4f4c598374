"""Exporters and engines on real loopback sockets, and a probe's answer read back."""

import asyncio
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from exporters.engine.config import Config
from exporters.engine.server import build_app

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
