"""A transparent proxy in front of an embedding server; what passed through is decoded in another process.

Bytes go through as they come, both ways, streams too. Copies of embedding answers are queued behind the
answer; when the decoder is busy they are dropped and counted, never waited for.
"""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import ParamSpec, TypeVar

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from prometheus_client import CollectorRegistry, Counter, Histogram
from yarl import URL

from exporters.drift.config import Tap
from exporters.drift.decode import decode
from exporters.drift.streams import Streams
from exporters.drift.vectors import Batch
from exporters.drift.wire import WireError
from slo.buckets import LATENCY_BOUNDS_SECONDS
from slo.names import drift as names

log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")

EMBEDDINGS = "/v1/embeddings"
_HOP = frozenset(
    [
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    ]
)
_NICE = 10


class Reviving(Executor):
    """
    An executor whose process may die (out of memory, a signal): the next call starts another one.

    *make*: gives a fresh one; not asked more often than every *pause_seconds*, so that one answer that kills its
    reader each time costs no core. Until then submit() raises BrokenExecutor.
    """

    def __init__(self, make: Callable[[], Executor], pause_seconds: float = 10.0) -> None:
        self._make, self._pause = make, pause_seconds
        self._inner, self._made = make(), time.monotonic()

    def submit(self, fn: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "Future[R]":
        """As Executor.submit."""
        try:
            return self._inner.submit(fn, *args, **kwargs)
        except BrokenExecutor:
            if time.monotonic() - self._made < self._pause:
                raise
        log.warning("the decoder ended; another one is started")
        self._inner.shutdown(wait=False)
        self._inner, self._made = self._make(), time.monotonic()
        return self._inner.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As Executor.shutdown."""
        self._inner.shutdown(wait, cancel_futures=cancel_futures)


def decoder(pause_seconds: float = 10.0) -> Executor:
    """One process of low priority, so that parsing never holds up an answer."""
    context = get_context("spawn")
    return Reviving(
        lambda: ProcessPoolExecutor(1, mp_context=context, initializer=os.nice, initargs=(_NICE,)),
        pause_seconds,
    )


class Proxy:
    """The tap of one upstream; *executor* decodes."""

    def __init__(self, tap: Tap, streams: Streams, registry: CollectorRegistry, executor: Executor) -> None:
        self._tap, self._streams, self._executor = tap, streams, executor
        self._waiting: set[asyncio.Task[None]] = set()
        self._requests = Counter(
            names.TAP_REQUESTS, "Requests through the tap by status; 502: upstream did not answer.",
            ["code"], registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            names.TAP_DURATION, "Time to the whole answer of embedding requests through the tap.",
            buckets=LATENCY_BOUNDS_SECONDS["time_to_first_token"], registry=registry,
        )  # fmt: skip
        self._session: aiohttp.ClientSession | None = None

    async def running(self, _: web.Application) -> AsyncIterator[None]:
        """Hold the upstream's connections while the application runs."""
        self._session = aiohttp.ClientSession(
            auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False,
        )  # fmt: skip
        # Started now, so that the first answers need not wait for it in the queue.
        warm = asyncio.get_running_loop().run_in_executor(self._executor, os.getpid)
        yield
        warm.cancel()
        await self._session.close()
        for task in self._waiting:
            task.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass one request on, and its answer back."""
        assert self._session is not None
        begun = asyncio.get_running_loop().time()
        embedding = request.method == "POST" and request.path.rstrip("/").endswith(EMBEDDINGS)
        url = URL(self._tap.upstream + request.raw_path, encoded=True)
        body = request.content if request.body_exists else None
        try:
            upstream = await self._session.request(
                request.method, url, headers=_end_to_end(request.headers, "host"), data=body,
                allow_redirects=False, skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
            )  # fmt: skip
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self._requests.labels("502").inc()
            return web.json_response({"error": f"the embedding server does not answer: {error}"}, status=502)
        self._requests.labels(str(upstream.status)).inc()
        async with upstream:
            answer, copy = await self._pass(request, upstream, embedding and upstream.status == 200)
        if embedding:
            self._seconds.observe(asyncio.get_running_loop().time() - begun)
        if copy is not None:
            self._sample(request, upstream.headers, copy)
        return answer

    async def _pass(
        self, request: web.Request, upstream: aiohttp.ClientResponse, wanted: bool
    ) -> tuple[web.StreamResponse, bytes | None]:
        answer = web.StreamResponse(status=upstream.status, reason=upstream.reason)
        answer.headers.update(_end_to_end(upstream.headers))
        await answer.prepare(request)
        parts: list[bytes] = []
        size = 0
        try:
            async for chunk in upstream.content.iter_any():
                await answer.write(chunk)
                size += len(chunk)
                if wanted and size <= self._tap.max_copy_bytes:
                    parts.append(chunk)
            await answer.write_eof()
        except (aiohttp.ClientError, OSError):  # either side hung up: so does the other
            if request.transport is not None:
                request.transport.close()
            return answer, None
        if wanted and size > self._tap.max_copy_bytes:
            self._streams.dropped["too_large"] += 1
            return answer, None
        return answer, b"".join(parts) if wanted else None

    def _sample(self, request: web.Request, headers: Mapping[str, str], copy: bytes) -> None:
        if len(self._waiting) >= self._tap.max_waiting:
            self._streams.dropped["busy"] += 1
            return
        encoding = headers.get("Content-Encoding", "").lower()
        version = request.headers.get(self._tap.version_header, self._tap.version)
        tenant = request.headers.get(self._tap.tenant_header, "")
        task = asyncio.create_task(self._decoded(copy, encoding, version, tenant))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _decoded(self, copy: bytes, encoding: str, version: str, tenant: str) -> None:
        try:
            model, checked = await asyncio.get_running_loop().run_in_executor(
                self._executor, decode, copy, encoding
            )
        except WireError as error:
            self._streams.dropped["undecodable"] += 1
            log.debug("an answer could not be read: %s", error)
            return
        except BrokenExecutor as error:
            self._streams.dropped["busy"] += 1
            log.error("the decoder ended: %s; answers pass unsampled until it is started again", error)
            return
        except Exception:  # what an answer did to the decoder must not stop the tap
            self._streams.dropped["undecodable"] += 1
            log.exception("an answer could not be decoded")
            return
        self._streams.offer(Batch(model, version, tenant, checked.vectors), "tap", checked.rejected)


def _end_to_end(headers: Mapping[str, str], *also: str) -> CIMultiDict[str]:
    """Headers that belong to the message, not to one connection."""
    given = CIMultiDict(headers)
    named = {one.strip().lower() for one in given.get("Connection", "").split(",")}
    return CIMultiDict((k, v) for k, v in given.items() if k.lower() not in (_HOP | named | set(also)))


def tap_app(proxy: Proxy) -> web.Application:
    """Every method and path goes through *proxy*."""
    app = web.Application(client_max_size=0)
    app.cleanup_ctx.append(proxy.running)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    return app
