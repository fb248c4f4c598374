"""The ingest port: vectors, spans and retrievals in, each behind the bearer token; samples of windows out."""

import asyncio
import hmac
import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter

from exporters.drift import otlp, wire
from exporters.drift.retrieval import RetrievalHealth, retrievals
from exporters.drift.series import key_of
from exporters.drift.streams import Streams
from exporters.drift.vectors import check
from slo.names import drift as names

LARGE_BYTES = 65_536


def bearer(token: str | None, registry: CollectorRegistry) -> Middleware:
    """A middleware that answers 401 without `Authorization: Bearer <token>`; lets all pass where token is None."""
    refused = Counter(names.UNAUTHORISED, "Requests to the ingest port without the token.", registry=registry)
    expected = f"Bearer {token}".encode() if token is not None else None

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        # A header may hold any bytes; aiohttp hands those that are no text on as lone surrogates.
        given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        if expected is not None and not hmac.compare_digest(given, expected):
            refused.inc()
            return web.json_response(
                {"error": "no or a wrong token; send Authorization: Bearer <the ingest token>"},
                status=401, headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip
        return await handler(request)

    return middleware


def ingest_app(
    streams: Streams, health: RetrievalHealth, auth: Middleware, max_body_bytes: int
) -> web.Application:
    """
    POST /v1/vectors, /v1/retrievals, /v1/traces (OTLP/HTTP); GET /v1/window?model=…: the present sample as npy.

    400: the body cannot be read, with the reason; 413: it is over *max_body_bytes*.
    """
    post = _posts(streams, health)
    app = web.Application(middlewares=[auth], client_max_size=max_body_bytes)
    app.router.add_routes([web.post(path, _answering(handler)) for path, handler in post.items()])

    async def window(request: web.Request) -> web.Response:
        sample = streams.window(key_of(dict(request.query)))
        if sample is None:
            known = [vars(key) for key in streams.streams]
            return web.json_response({"error": "no such stream", "streams": known}, status=404)
        body = io.BytesIO()
        np.save(body, sample)
        return web.Response(body=body.getvalue(), content_type=wire.NPY)

    app.router.add_get("/v1/window", window)
    return app


Answer = dict[str, object]
Read = Callable[[web.Request, bytes], Callable[[], Answer]]
"""Decodes a body, perhaps in another thread, and returns what is then done with it on the event loop."""


def _posts(streams: Streams, health: RetrievalHealth) -> dict[str, Read]:
    def vectors(request: web.Request, body: bytes) -> Callable[[], Answer]:
        batch = wire.batch(request.content_type, body, request.query)
        checked = check(batch.vectors)

        def take() -> Answer:
            kept = replace(batch, vectors=checked.vectors)
            accepted, rejected = streams.offer(kept, "post", checked.rejected)
            return {"accepted": accepted, "rejected": dict(rejected)}

        return take

    def told(_: web.Request, body: bytes) -> Callable[[], Answer]:
        document = wire.json_object(body)
        found = list(retrievals(document))

        def take() -> Answer:
            tenant = streams.tenants.name(str(document.get("tenant", "")))
            for one in found:
                health.observe(tenant, one)
            return {"accepted": len(found)}

        return take

    def traces(request: web.Request, body: bytes) -> Callable[[], Answer]:
        found = [(batch, check(batch.vectors)) for batch in otlp.batches(request.content_type, body)]

        def take() -> Answer:
            for batch, checked in found:
                if batch.model:
                    streams.offer(replace(batch, vectors=checked.vectors), "otlp", checked.rejected)
                else:
                    streams.dropped["undecodable"] += 1
            return {}

        return take

    return {"/v1/vectors": vectors, "/v1/retrievals": told, "/v1/traces": traces}


def _answering(read: Read) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        try:
            body = await request.read()
            # Large bodies must not hold up the tap, which shares this loop.
            large = len(body) >= LARGE_BYTES
            take = await asyncio.to_thread(read, request, body) if large else read(request, body)
        except web.RequestPayloadError as error:
            return web.json_response({"error": f"the body cannot be decoded: {error}"}, status=400)
        except ValueError as error:  # WireError, JSON and Unicode errors
            return web.json_response({"error": str(error)}, status=400)
        answer = take()
        if request.content_type == otlp.PROTOBUF:
            return web.Response(body=b"", content_type=otlp.PROTOBUF)
        return web.json_response(answer)

    return handler
