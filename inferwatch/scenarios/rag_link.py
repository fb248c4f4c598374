"""`python -m inferwatch.scenarios.rag_link PORT FILE`: what lies between a RAG service and its engine.

FILE (JSON): {NAME: {"upstream": URL, "spans": MODEL or ""}}. /NAME/… is passed on to the upstream. POST /link with {NAME:
{"delay_seconds": 0.2, "cuts": false}} makes the way longer, or cuts every second connection that is used again, as a
balancer does that gave it up in the meantime. Where "spans" names a model, the link writes the span that vLLM would,
measured on the engine's side of the delay: the simulated engine writes none.
"""

import asyncio
import json
import sys
from pathlib import Path
from time import time_ns
from typing import Any

import aiohttp
from aiohttp import web
from opentelemetry import trace
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from inferwatch import tracing

HOST = "127.0.0.1"
ENGINE_SPAN = "llm_request"
E2E, FIRST_TOKEN = "gen_ai.latency.e2e", "gen_ai.latency.time_to_first_token"
_W3C = TraceContextTextMapPropagator()


class Link:
    """All ways, by name."""

    def __init__(self, upstreams: dict[str, dict[str, str]], session: aiohttp.ClientSession) -> None:
        self._upstreams, self._session = upstreams, session
        self._told: dict[str, dict[str, Any]] = {}
        self._seen: set[object] = set()
        self._reused = 0

    async def switch(self, request: web.Request) -> web.Response:
        """POST /link."""
        if request.method == "POST":
            self._told.update(await request.json())
        return web.json_response(self._told)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Pass one request on, unless its connection is cut."""
        name = request.match_info["name"]
        told = self._told.get(name, {})
        body = await request.read()
        if request.transport is None:
            raise ConnectionResetError("the caller has gone")
        caller = request.transport.get_extra_info("peername")
        if told.get("cuts") and self._is_cut(caller):
            self._seen.discard(caller)
            request.transport.abort()
            return web.Response(status=502)  # reaches nobody
        self._seen.add(caller)
        await asyncio.sleep(told.get("delay_seconds", 0.0))
        return await self._pass_on(request, self._upstreams[name], body)

    def _is_cut(self, caller: object) -> bool:
        if caller not in self._seen:
            return False
        self._reused += 1
        return self._reused % 2 == 0

    async def _pass_on(self, request: web.Request, way: dict[str, str], body: bytes) -> web.StreamResponse:
        began, first = time_ns(), None
        url = f"{way['upstream']}/{request.match_info['rest']}"
        async with self._session.post(url, data=body, headers={"Content-Type": "application/json"}) as answer:
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers["Content-Type"]}
            )
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                first = first or time_ns()
                await response.write(piece)
        ended = time_ns()
        await response.write_eof()
        if way["spans"]:
            _write_span(request, way["spans"], began, first or ended, ended)
        return response


def _write_span(request: web.Request, model: str, began: int, first: int, ended: int) -> None:
    """As vLLM's: a child of the caller's span, latencies in seconds."""
    span = trace.get_tracer("link").start_span(
        ENGINE_SPAN,
        context=_W3C.extract(request.headers),
        kind=trace.SpanKind.SERVER,
        start_time=began,
        attributes={
            "gen_ai.request.model": model,
            E2E: (ended - began) / 1e9,
            FIRST_TOKEN: (first - began) / 1e9,
        },
    )
    span.end(ended)


def application(link: Link) -> web.Application:
    """The switch, and the ways."""
    app = web.Application()
    app.router.add_route("*", "/link", link.switch)
    app.router.add_post("/{name}/{rest:.+}", link.handle)
    return app


async def _serve(port: int, path: Path) -> None:
    end = tracing.install("vllm")
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            link = Link(json.loads(path.read_text(encoding="utf-8")), session)
            runner = web.AppRunner(application(link), access_log=None, keepalive_timeout=75.0)
            await runner.setup()
            await web.TCPSite(runner, HOST, port).start()
            await asyncio.Event().wait()
    finally:
        await asyncio.to_thread(end)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), Path(sys.argv[2])))
