"""A simulated server in the test's own event loop, and what its /metrics says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sim.config import EngineConfig, LoadConfig, SimConfig
from sim.server import Server

FAST = EngineConfig(model="tiny", decode_step_seconds=0.01, decode_sequence_seconds=0.0)


class Client:
    """Requests to one simulated server."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.session = session

    async def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET."""
        async with self.session.get(self.server.url() + path) as response:
            return response.status, await response.text()

    async def metrics(self) -> dict[str, float]:
        """Samples by `name` or `name/last label value`, without model and engine."""
        status, text = await self.get("/metrics")
        assert status == 200
        samples: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                rest = [v for k, v in sorted(sample.labels.items()) if k not in ("model_name", "engine")]
                samples["/".join([sample.name.removeprefix("vllm:"), *rest])] = sample.value
        return samples

    async def complete(self, **body: object) -> tuple[int, str]:
        """Status and whole body of POST /v1/completions."""
        payload = {"prompt": "one two three", "max_tokens": 4, "ignore_eos": True, **body}
        async with self.session.post(self.server.url() + "/v1/completions", json=payload) as response:
            return response.status, await response.text()

    async def until(self, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        """Scrape until a condition holds; the test's time limit ends a wait in vain."""
        while True:
            samples = await self.metrics()
            if holds(samples):
                return samples
            await asyncio.sleep(0.1)


Start = Callable[..., Awaitable[Client]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start simulated servers on free ports; all end with the test."""
    async with AsyncExitStack() as stack:

        async def begin(engine: EngineConfig = FAST, load: LoadConfig | None = None) -> Client:
            config = SimConfig(engine=engine, load=load or LoadConfig())
            server = await stack.enter_async_context(Server(config))
            session = await stack.enter_async_context(aiohttp.ClientSession())
            return Client(server, session)

        yield begin
