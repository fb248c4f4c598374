"""A real HTTP server on loopback that misbehaves as engines do."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiohttp import web

TOKEN = 'data: {"choices":[{"index":0,"text":" a","finish_reason":"length"}]}\n\n'
END = "data: [DONE]\n\n"


class FakeEngine:
    """What the engine does, changed at will; what it saw, kept."""

    def __init__(self) -> None:
        self.models: object = {"data": [{"id": "tiny"}]}
        self.body = TOKEN + END
        self.status = 200
        self.models_status = 200
        self.delay = 0.0
        self.break_off = False
        self.address = ""
        self.seen: list[tuple[str, dict[str, str], dict[str, object]]] = []
        self.model_asks = 0
        self.now = 0
        self.most_at_once = 0

    async def list_models(self, _: web.Request) -> web.Response:
        """GET /v1/models."""
        self.model_asks += 1
        return web.Response(
            text=json.dumps(self.models), status=self.models_status, headers={"Location": "/elsewhere"}
        )

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """POST of either completions path."""
        self.now += 1
        self.most_at_once = max(self.most_at_once, self.now)
        try:
            asked = await request.json()
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.seen.append((request.path, headers, asked))
            if self.status != 200:
                return web.Response(status=self.status, text="no", headers={"Location": "/elsewhere"})
            if asked["model"] != self.models_served():
                return web.json_response({"error": {"message": "no such model"}}, status=404)
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await asyncio.sleep(self.delay)
            await response.write(self.body.encode())
            if self.break_off and request.transport is not None:
                request.transport.abort()
            return response
        finally:
            self.now -= 1

    def models_served(self) -> str:
        """The one model that /v1/models lists."""
        assert isinstance(self.models, dict)
        return str(self.models["data"][0]["id"])


StartEngine = Callable[[], Awaitable[FakeEngine]]


@pytest.fixture
async def start_engine() -> AsyncIterator[StartEngine]:
    """Start fake engines on free loopback ports; all end with the test."""
    runners: list[web.AppRunner] = []

    async def start() -> FakeEngine:
        engine = FakeEngine()
        app = web.Application()
        app.router.add_get("/v1/models", engine.list_models)
        app.router.add_post("/v1/completions", engine.complete)
        app.router.add_post("/v1/chat/completions", engine.complete)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        runners.append(runner)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        engine.address = f"127.0.0.1:{runner.addresses[0][1]}"
        return engine

    yield start
    for runner in runners:
        await runner.cleanup()
