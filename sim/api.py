"""The server that clients see: OpenAI-compatible routes, probes and /metrics."""

import asyncio
import math
import time
from contextlib import suppress
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import choose_encoder

from sim import openai
from sim.config import FaultConfig
from sim.engine import Engine
from sim.http_metrics import HttpMetrics, instrument
from sim.metrics import EngineMetrics
from sim.process import process_registry, python_registry
from sim.request import FinishReason, Group, Outbox, Output, Request
from sim.text import join

EMULATED_VERSION = "0.32.0"
OWNER = "inferwatch-sim"
HEADERS = {"Server": OWNER, "X-Inferwatch-Simulated": "true"}
JSON_HEADERS = {"Content-Type": "application/json"}
# Tokens that a request gets before the engine fails it.
TOKENS_BEFORE_FAILURE = 3
SILENCE_LOOK_SECONDS = 0.05


class Api:
    """The routes of one server process: its engine, its registry, and the faults set on it."""

    def __init__(self, engine: Engine, registry: CollectorRegistry) -> None:
        self.engine = engine
        self.fault = FaultConfig()
        self._registry = registry
        self._http = HttpMetrics(registry)
        self._python_only = python_registry()
        self._second_worker: CollectorRegistry | None = None
        self._scrapes = 0
        self._started_at = int(time.time())

    def application(self) -> web.Application:
        """A fresh aiohttp application; one is needed each time the port opens."""
        app = web.Application(middlewares=[self._silence, instrument(self._http), plain_errors])
        app.on_response_prepare.append(mark_simulated)
        app.router.add_get("/health", self.health)
        app.router.add_route("*", "/ping", self.health)
        app.router.add_get("/version", self.version)
        app.router.add_get("/load", self.load)
        app.router.add_get("/metrics", self.scrape)
        app.router.add_get("/metrics/", self.scrape_negotiated)
        app.router.add_get("/v1/models", self.models)
        app.router.add_post("/v1/completions", self.completions)
        app.router.add_post("/v1/chat/completions", self.chat_completions)
        return app

    @web.middleware
    async def _silence(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Hold every request that comes while the server is silent; those that still wait then are answered."""
        while self.fault.silent:
            await asyncio.sleep(SILENCE_LOOK_SECONDS)
        return await handler(request)

    async def health(self, request: web.Request) -> web.Response:
        """200 with no body; a hung or sleeping engine still answers so, as vLLM does."""
        return web.Response()

    async def version(self, request: web.Request) -> web.Response:
        """The version whose metrics are simulated, and that they are."""
        return web.json_response({"version": EMULATED_VERSION, "simulated": True})

    async def load(self, request: web.Request) -> web.Response:
        """Always 0, as vLLM without load tracking."""
        return web.json_response({"server_load": 0})

    async def models(self, request: web.Request) -> web.Response:
        """The one model served; its owner says that it is simulated."""
        card = {
            "id": self.engine.config.model,
            "object": "model",
            "created": self._started_at,
            "owned_by": OWNER,
            "root": self.engine.config.model,
            "parent": None,
            "max_model_len": self.engine.config.max_model_len,
        }
        return web.json_response({"object": "list", "data": [card]})

    async def scrape(self, request: web.Request) -> web.Response:
        """Prometheus text whatever `Accept` says, as vLLM's route without a slash."""
        body = generate_latest(self._visible_registry())
        return web.Response(body=body, headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8"})

    async def scrape_negotiated(self, request: web.Request) -> web.Response:
        """Text or OpenMetrics as `Accept` asks, as vLLM's mounted application."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._visible_registry()), headers={"Content-Type": content_type})

    async def completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/completions."""
        return await self._answer("completion", request)

    async def chat_completions(self, request: web.Request) -> web.StreamResponse:
        """POST /v1/chat/completions."""
        return await self._answer("chat", request)

    def _visible_registry(self) -> CollectorRegistry:
        if self.fault.metrics == "python_only":
            return self._python_only
        self._scrapes += 1
        if self.fault.metrics == "two_workers" and self._scrapes % 2:
            if self._second_worker is None:
                self._second_worker = process_registry()
                EngineMetrics(self.engine.config, self._second_worker)
                HttpMetrics(self._second_worker)
            return self._second_worker
        return self._registry

    async def _answer(self, kind: Literal["completion", "chat"], http: web.Request) -> web.StreamResponse:
        engine = self.engine
        arrived_at = asyncio.get_running_loop().time()
        call = openai.parse(kind, await http.read(), engine.config.model, engine.config.max_model_len)
        self._refuse_if_full()
        fails, in_engine = self._draw_failure()
        if fails and not in_engine:
            raise openai.internal_error()
        await asyncio.sleep(engine.config.frontend_seconds)
        group, requests = self._requests(call, arrived_at, TOKENS_BEFORE_FAILURE if fails else 0)
        try:
            if call.stream:
                return await self._stream(http, call, group, requests)
            return await self._whole(call, group, requests)
        finally:
            for request in requests:
                engine.abort(request)

    def _refuse_if_full(self) -> None:
        reason = self.engine.full()
        if reason is not None:
            self.engine.metrics.rejected(reason)
            raise openai.busy()

    def _draw_failure(self) -> tuple[bool, bool]:
        config, rng = self.engine.config, self.engine.rng
        if not config.error_share or rng.random() >= config.error_share:
            return False, False
        return True, rng.random() < config.engine_error_share

    def _requests(
        self, call: openai.Call, arrived_at: float, fail_after_tokens: int
    ) -> tuple[Group, list[Request]]:
        engine = self.engine
        group = Group(call.n, Outbox(streaming=call.stream), unfinished=len(call.prompts) * call.n)
        never_stops = call.ignore_eos or fail_after_tokens > 0
        requests: list[Request] = []
        for prompt in call.prompts:
            for _ in range(call.n):
                natural = engine.rng.expovariate(1 / engine.config.natural_output_tokens)
                request = Request(
                    list(prompt),
                    call.max_tokens,
                    stop_after_tokens=0 if never_stops else max(1, math.ceil(natural)),
                    fail_after_tokens=min(fail_after_tokens, call.max_tokens),
                    index=len(requests),
                    group=group,
                    arrived_at=arrived_at,
                )
                requests.append(request)
        return group, requests

    def _submit(self, requests: list[Request]) -> None:
        # Checked again: others may have filled the queue since this request was let in.
        self._refuse_if_full()
        for request in requests:
            self.engine.submit(request)

    async def _whole(self, call: openai.Call, group: Group, requests: list[Request]) -> web.Response:
        self._submit(requests)
        reasons: dict[int, FinishReason] = {}
        while len(reasons) < len(requests):
            reasons.update(_ends(await group.outbox.take()))
        if FinishReason.ERROR in reasons.values():
            raise openai.internal_error()
        texts = [join(request.tokens[request.prompt_length :]) for request in requests]
        made = sum(request.num_generated for request in requests)
        named = [reasons[request.index].value for request in requests]
        return web.json_response(openai.whole(call, texts, named, made))

    async def _stream(
        self, http: web.Request, call: openai.Call, group: Group, requests: list[Request]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await response.prepare(http)
        # A client that left is told by the next write, where this task was not cancelled before.
        with suppress(ConnectionResetError):
            await self._events(response, call, group, requests)
        return response

    async def _events(
        self, response: web.StreamResponse, call: openai.Call, group: Group, requests: list[Request]
    ) -> None:
        writer = openai.StreamWriter(call)
        try:
            self._submit(requests)
            ended = 0
            while ended < len(requests):
                outputs = await group.outbox.take()
                ends = _ends(outputs)
                if FinishReason.ERROR in ends.values():
                    raise openai.internal_error()
                ended += len(ends)
                await response.write(writer.events(outputs))
            if call.include_usage:
                made = sum(request.num_generated for request in requests)
                await response.write(writer.usage_event(made))
        except openai.ApiError as error:
            # The status line is long gone, so the client learns of it inside the 200.
            await response.write(openai.error_event(error))
        await response.write(openai.DONE)
        await response.write_eof()


def _ends(outputs: list[Output]) -> dict[int, FinishReason]:
    return {o.index: o.finish_reason for o in outputs if o.finish_reason is not None}


@web.middleware
async def plain_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn our errors and aiohttp's 404/405 into JSON bodies."""
    try:
        return await handler(request)
    except openai.ApiError as error:
        return web.Response(status=error.status, body=error.body, headers=JSON_HEADERS)
    except web.HTTPException as error:
        return web.json_response({"detail": error.reason}, status=error.status)


async def mark_simulated(request: web.Request, response: web.StreamResponse) -> None:
    """Put the simulated mark on every answer."""
    response.headers.update(HEADERS)
