"""What every exporter of ours serves beside its metrics: own endpoints, TLS, basic auth, shutdown.

TLS and basic auth are read from a file in the web configuration format of the Prometheus exporter
toolkit (`exporters/webconfig.py`), so that one file serves our exporters and other people's alike.
"""

import asyncio
import logging
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from exporters.webconfig import WebConfig, basic_auth, extra_headers, tls_context

# Prometheus 3 refuses an answer without a content type that it knows.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

log = logging.getLogger(__name__)


class ListenError(ValueError):
    """The address to listen on cannot be read; the text says what to write instead."""


@dataclass(frozen=True)
class Listen:
    """Where a server binds. Port 0 lets the system choose a free one."""

    host: str
    port: int


def parse_listen(text: str) -> Listen:
    """`HOST:PORT` (IPv6 in brackets) to a Listen; raises ListenError."""
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not bare or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ListenError(
            f"--listen {text!r}: not HOST:PORT with a port from 0 to 65535; write for example 127.0.0.1:9480"
        )
    if ":" in bare and bare == host:
        raise ListenError(f"--listen {text!r}: put the IPv6 address in brackets, for example [::1]:9480")
    return Listen(bare, int(port))


def exposition(body: bytes, status: int = 200) -> web.Response:
    """An answer in the Prometheus text format."""
    return web.Response(body=body, status=status, headers={"Content-Type": CONTENT_TYPE})


def own_routes(registry: CollectorRegistry, ready: Callable[[], bool]) -> list[web.RouteDef]:
    """/metrics (the exporter's own), /-/healthy (the process answers) and /-/ready (it can do its work)."""

    async def metrics(_: web.Request) -> web.Response:
        return exposition(generate_latest(registry))

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="healthy\n")

    async def is_ready(_: web.Request) -> web.Response:
        return web.Response(text="ready\n") if ready() else web.Response(text="not ready\n", status=503)

    return [
        web.get("/metrics", metrics),
        web.get("/-/healthy", healthy),
        web.get("/-/ready", is_ready),
    ]


def secure(app: web.Application, config: WebConfig) -> None:
    """Put the file's basic auth and response headers before every route of `app`."""
    if config.basic_auth_users:
        app.middlewares.append(basic_auth(config.basic_auth_users))
    if config.http_server_config.headers:
        app.on_response_prepare.append(extra_headers(config.http_server_config.headers))


async def serve(
    app: web.Application,
    listen: Listen,
    config: WebConfig | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; requests under way get 5 s to end.

    `started` is told the base URL with the port really bound, once connections are accepted.
    """
    context: ssl.SSLContext | None = None
    if config is not None:
        secure(app, config)
        context = tls_context(config)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, listen.host, listen.port, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        shown = f"[{listen.host}]" if ":" in listen.host else listen.host
        url = f"{'https' if context else 'http'}://{shown}:{port}"
        log.info("listening on %s", url)
        if started is not None:
            started(url)
        await _stopped()
    finally:
        await runner.cleanup()


async def _stopped() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
