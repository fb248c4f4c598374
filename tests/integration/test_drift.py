"""The whole way of a drift in a minute: tap, exporter, Prometheus, Alertmanager, receiver; a small embedder stands in.

`make drift-e2e` does the same with a real vLLM and real sentence embeddings.
"""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web
from rich.console import Console
from threadpoolctl import threadpool_limits

from inferwatch.drift_e2e import main
from inferwatch.drift_e2e.plan import Plan
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

PLAN = Plan(
    window=10, slices=5, sample_size=120, min_samples=60, reference_texts=500, texts_per_second=24.0,
    healthy=12.0, patience=90.0, calibration_rounds=240,
)  # fmt: skip
COOKS = "onion garlic butter pan oven roast simmer taste salt pepper lemon bread cheese wine sauce".split()  # noqa: SIM905 # a list of words reads best as words
SAILS = "mast anchor harbour tide wind rope deck wave storm captain chart compass keel stern bow".split()  # noqa: SIM905 # as above


def texts(words: list[str], count: int, seed: int) -> list[str]:
    """Sentences of five words."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(words, 5)) for _ in range(count)]


def vector(text: str, dimension: int) -> list[float]:
    """The mean of a fixed random vector a word, as simple embeddings are made."""
    rows = [
        np.random.default_rng(
            int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
        ).standard_normal(dimension)
        for word in text.split()
    ]
    mean = np.mean(rows, axis=0)
    found: list[float] = (mean / np.linalg.norm(mean)).tolist()
    return found


class WordEmbedder:
    """An OpenAI-compatible /v1/embeddings in a thread; swapped: another name and dimension."""

    def __init__(self) -> None:
        self.url = ""
        self.model, self.dimension = "words-48", 48
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        assert self._ready.wait(30)

    def start(self, swapped: bool = False) -> str:
        """Nothing to wait for."""
        self.model, self.dimension = ("words-64", 64) if swapped else ("words-48", 48)
        return self.model

    def stop(self) -> None:
        """It ends with the test."""

    def close(self) -> None:
        """End the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _serve(self) -> None:
        runner = self._loop.run_until_complete(self._started())
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()

    async def _started(self) -> web.AppRunner:
        async def embeddings(request: web.Request) -> web.Response:
            asked = (await request.json())["input"]
            data = [{"embedding": vector(text, self.dimension)} for text in asked]
            return web.json_response({"model": self.model, "data": data})

        app = web.Application()
        app.router.add_post("/v1/embeddings", embeddings)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        return runner


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    """A running embedder."""
    one = WordEmbedder()
    yield one
    one.close()


def test_healthy_shifted_slow_and_swapped(embedder: WordEmbedder, tmp_path: Path) -> None:
    """No drift, then a warning, then one page with slow retrieval, then a swap: every claim of the run holds."""
    topics = {
        "reference": texts(COOKS, 500, 1),
        "healthy": texts(COOKS, 3000, 2),
        "shifted": texts(SAILS, 3000, 3),
    }
    with threadpool_limits(1):
        result = main.run(
            default_settings(run_dir=tmp_path),
            Reporter(Console(stderr=True)),
            embedder,
            topics,
            PLAN,
            main.PHASES[:-1],
        )

    assert result["failures"] == []
    assert result["passed"] is True
    assert result["requests"] > 50
