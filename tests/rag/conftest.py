"""A service with a tiny model, and an engine that answers as it is told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from rag import app as rag_app
from rag.config import Config
from rag.metrics import Metrics

FIXTURES = Path(__file__).parents[1] / "fixtures" / "rag"
TINY = FIXTURES / "tiny-bert"
DOCUMENTS = (
    ("with", "the with statement work with a class . how does it work ?"),
    ("cats", "a cat sat on the mat , and a dog did not sit near it at all"),
    ("functions", "a function is a class and a module is a class"),
    ("dogs", "the very long dog sat on a mat near the cat"),
)


class FakeEngine:
    """`/v1/chat/completions`; *events* are sent one by one, *seen* holds each request's body and headers."""

    def __init__(self) -> None:
        self.events: list[Any] = [
            {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"delta": {"content": "It "}}]},
            {"choices": [{"delta": {"content": "works."}, "finish_reason": "stop"}]},
            {
                "choices": [],
                "usage": {
                    "prompt_tokens": 300,
                    "completion_tokens": 3,
                    "prompt_tokens_details": {"cached_tokens": 128},
                },
            },
            "[DONE]",
        ]
        self.status, self.pause, self.drop_next = 200, 0.0, False
        self.seen: list[tuple[dict[str, Any], dict[str, str]]] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((await request.json(), dict(request.headers)))
        if self.drop_next:
            self.drop_next = False
            request.transport.close()
            return web.Response()
        response = web.StreamResponse(status=self.status, headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self.events:
            await asyncio.sleep(self.pause)
            text = event if isinstance(event, str) else json.dumps(event)
            await response.write(f"data: {text}\n\n".encode())
        return response


@asynccontextmanager
async def listening(app: web.Application, **more: Any) -> AsyncIterator[str]:
    """The application on a free loopback port."""
    runner = web.AppRunner(app, access_log=None, **more)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def engine() -> AsyncIterator[FakeEngine]:
    fake = FakeEngine()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", fake.handle)
    async with listening(app) as fake.url:
        yield fake


class Service:
    """A running service: its URL, a client, its parts and a way to read one of its metrics."""

    def __init__(self, url: str, client: aiohttp.ClientSession, parts: rag_app.Parts) -> None:
        self.url, self.client, self.parts = url, client, parts

    async def ask(self, question: str = "how does the with statement work ?", **more: Any) -> tuple[int, Any]:
        headers = more.pop("headers", {})
        async with self.client.post(
            f"{self.url}/v1/rag/answer", json={"question": question, **more}, headers=headers
        ) as answer:
            return answer.status, await answer.json()

    def value(self, name: str, **labels: str) -> float | None:
        return sample(self.parts.metrics, name, **labels)


def sample(metrics: Metrics, name: str, **labels: str) -> float | None:
    """One sample as a scrape would see it; None when there is none."""
    found: float | None = metrics.registry.get_sample_value(name, labels)
    return found


Start = Callable[..., Any]


@pytest.fixture
async def start(engine: FakeEngine, tmp_path: Path) -> AsyncIterator[Start]:
    """Start a service; keywords are laid over a small configuration."""
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("".join(json.dumps({"title": t, "text": x}) + "\n" for t, x in DOCUMENTS))
    async with AsyncExitStack() as stack:

        async def begin(**over: Any) -> Service:
            config = Config.model_validate(
                {
                    "engine": {"url": engine.url},
                    "embeddings": [{"model_dir": TINY}],
                    "corpus": {"file": corpus},
                    "retrieval": {"top_k": 3, "keep": 2, "min_score": -1.0},
                    "data_dir": tmp_path / "data",
                    "faults": True,
                    **over,
                }
            )
            parts = await stack.enter_async_context(rag_app.parts(config))
            app = rag_app.application(parts)
            url = await stack.enter_async_context(listening(app, handler_cancellation=True))
            client = await stack.enter_async_context(aiohttp.ClientSession())
            return Service(url, client, parts)

        yield begin


@pytest.fixture
def spans() -> Any:
    """Finished spans, by calling it."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield exporter.get_finished_spans
    exporter.shutdown()
