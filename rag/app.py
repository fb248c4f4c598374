"""A configuration -> the service: answers, its own metrics and health, and the switch that makes stages fail."""

import asyncio
import ipaddress
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client import generate_latest
from tokenizers import Tokenizer

from inferwatch.drift_client import DriftClient
from rag import corpus, embedder, library
from rag.answer import ROUTE, Answers
from rag.cache import TwoLevels
from rag.config import POOLS, Config, ConfigError
from rag.context import Spans
from rag.engine import Engine
from rag.faults import FaultError, Faults
from rag.library import Library
from rag.metrics import Metrics
from rag.pipeline import Parts
from rag.pool import Pool

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@asynccontextmanager
async def parts(config: Config) -> AsyncIterator[Parts]:
    """All that a pipeline works with, opened; indexes are made where they are missing. Raises ConfigError."""
    metrics = Metrics()
    pools = {
        name: Pool(name, wanted.size, wanted.wait_seconds, metrics)
        for name, wanted in ((name, getattr(config.pools, name)) for name in POOLS)
    }
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession())
        found = await _library(config, session)
        for version in found.versions.values():
            metrics.version.labels(version.name, str(version.index.dimension)).set(1)
        cache = TwoLevels(config.cache, metrics)
        stack.callback(cache.close)
        engine = await stack.enter_async_context(Engine(config.engine, pools["engine"]))
        clients = _drift(config)
        for client in clients.values():
            stack.callback(client.close)
        spans = _spans(config)
        yield Parts(config, found, pools, Faults(pools), cache, engine, metrics, spans, clients)


def application(made: Parts) -> web.Application:
    """The routes. `/faults` and `/versions` are there only where the configuration allows them."""
    app = web.Application(client_max_size=made.config.max_body_bytes)
    app.router.add_post(ROUTE, Answers(made).handle)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(
            body=generate_latest(made.metrics.registry), headers={"Content-Type": CONTENT_TYPE}
        )

    async def well(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app.router.add_get("/metrics", metrics)
    app.router.add_get("/-/healthy", well)
    app.router.add_get("/-/ready", well)
    if made.config.faults:
        _add_switches(app, made)
    return app


def from_here(remote: str | None) -> bool:
    """Whether a peer's address is this machine's own."""
    try:
        return remote is not None and ipaddress.ip_address(remote).is_loopback
    except ValueError:
        return False


def _add_switches(app: web.Application, made: Parts) -> None:
    def guarded(handler: Handler) -> Handler:
        async def check(request: web.Request) -> web.StreamResponse:
            if not from_here(request.remote):
                return web.json_response({"error": "only from this machine"}, status=403)
            return await handler(request)

        return check

    async def faults(request: web.Request) -> web.Response:
        try:
            if request.method == "POST":
                made.faults.set(await request.json())
            elif request.method == "DELETE":
                made.faults.clear()
        except (ValueError, RecursionError) as error:
            text = str(error) if isinstance(error, FaultError) else "the body is no JSON"
            return web.json_response({"error": text}, status=400)
        return web.json_response(made.faults.shown())

    async def versions(request: web.Request) -> web.Response:
        try:
            if request.method == "POST":
                body: Any = await request.json()
                made.library.share(body if isinstance(body, dict) else {})
        except (ValueError, RecursionError) as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(made.library.shares)

    async def cache(_: web.Request) -> web.Response:
        made.cache.clear()
        return web.json_response({})

    for method in ("GET", "POST", "DELETE"):
        app.router.add_route(method, "/faults", guarded(faults))
    for method in ("GET", "POST"):
        app.router.add_route(method, "/versions", guarded(versions))
    app.router.add_delete("/cache", guarded(cache))


async def serve(config: Config, until: asyncio.Event) -> None:
    """Listen until *until* is set. Raises ConfigError, OSError when the port is taken."""
    host, _, port = config.listen.rpartition(":")
    async with parts(config) as made:
        runner = web.AppRunner(application(made), access_log=None, handler_cancellation=True)
        await runner.setup()
        try:
            await web.TCPSite(runner, host.strip("[]"), int(port)).start()
            log.info("answering on http://%s:%d%s", *runner.addresses[0][:2], ROUTE)
            await until.wait()
        finally:
            await runner.cleanup()


async def _library(config: Config, session: aiohttp.ClientSession) -> Library:
    passages = corpus.load(config.corpus)
    versions = []
    for one in config.embeddings:
        maker = embedder.make(one, session)
        stamp = "" if one.url else _stamp(embedder.model_dir(one))
        versions.append(await library.build(one, maker, passages, config.data_dir, stamp))
    return Library(passages, versions)


def _stamp(folder: Path) -> str:
    """Changes when the model's weights do, without reading them."""
    return str((folder / "model.safetensors").stat().st_size)


def _spans(config: Config) -> Spans:
    """How the context's tokens are counted: by the engine's tokenizer where one is named."""
    path = config.context.tokenizer
    if path is None:
        local = [one for one in config.embeddings if one.url is None]
        if not local:
            raise ConfigError(
                "context.tokenizer: needed where no embedding model runs here; name a tokenizer.json"
            )
        path = embedder.model_dir(local[0]) / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception for a missing or broken file
        raise ConfigError(f"context.tokenizer: {path}: cannot be read ({error})") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def spans(text: str) -> list[tuple[int, int]]:
        offsets: list[tuple[int, int]] = tokenizer.encode(text, add_special_tokens=False).offsets
        return offsets

    return spans


def _drift(config: Config) -> dict[str, DriftClient]:
    if config.drift is None:
        return {}
    path = config.drift.token_file
    try:
        token = path.read_text(encoding="utf-8").strip() if path else None
    except OSError as error:
        raise ConfigError(f"drift.token_file: {path}: cannot be read ({error.strerror})") from error
    return {
        one.version: DriftClient(config.drift.url, one.model, version=one.version, token=token)
        for one in config.embeddings
    }
