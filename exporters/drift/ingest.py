"""The ingest port: vectors, spans and retrievals in, each behind the bearer token; samples of windows out."""

import asyncio
import hmac
import io
import json
from collections.abc import Callable

import numpy as np
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from prometheus_client import CollectorRegistry, Counter

from exporters.drift import otlp, wire
from exporters.drift.retrieval import RetrievalHealth, retrievals
from exporters.drift.series import key_of
from exporters.drift.streams import Streams
from slo.names import drift as names


def bearer(token: str | None, registry: CollectorRegistry) -> Middleware:
    """A middleware that answers 401 without `Authorization: Bearer <token>`; lets all pass where token is None."""
    refused = Counter(names.UNAUTHORISED, "Requests to the ingest port without the token.", registry=registry)
    expected = f"Bearer {token}".encode() if token is not None else None

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode()
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


Take = Callable[[web.Request, bytes], dict[str, object]]


def _posts(streams: Streams, health: RetrievalHealth) -> dict[str, Take]:
    def vectors(request: web.Request, body: bytes) -> dict[str, object]:
        accepted, rejected = streams.offer(wire.batch(request.content_type, body, request.query), "post")
        return {"accepted": accepted, "rejected": dict(rejected)}

    def told(_: web.Request, body: bytes) -> dict[str, object]:
        document = json.loads(body)
        if not isinstance(document, dict):
            raise wire.WireError("not a JSON object")
        tenant = streams.tenants.name(str(document.get("tenant", "")))
        found = list(retrievals(document))
        for one in found:
            health.observe(tenant, one)
        return {"accepted": len(found)}

    def traces(request: web.Request, body: bytes) -> dict[str, object]:
        for batch in otlp.batches(request.content_type, body):
            if batch.model:
                streams.offer(batch, "otlp")
            else:
                streams.dropped["undecodable"] += 1
        return {}

    return {"/v1/vectors": vectors, "/v1/retrievals": told, "/v1/traces": traces}


def _answering(take: Take) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            # Large bodies must not hold up the tap, which shares this loop.
            answer = (
                take(request, body) if len(body) < 65_536 else await asyncio.to_thread(take, request, body)
            )
        except ValueError as error:  # WireError, JSON and Unicode errors
            return web.json_response({"error": str(error)}, status=400)
        if request.content_type == otlp.PROTOBUF:
            return web.Response(body=b"", content_type=otlp.PROTOBUF)
        return web.json_response(answer)

    return handler
