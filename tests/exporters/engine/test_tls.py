"""Engines behind TLS: trust, names, client certificates, and the wrong scheme."""

import ssl
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.test_utils import TestServer

from exporters.engine.config import Config
from tests.exporters.engine.live import RUNNING, engine, exporter, probe, reason


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
