"""The built-in clients: real HTTP requests against the simulated port, from a fixed seed.

Open loop up to a limit of requests in flight; half completions, half chats; a third streamed;
prompts share a few long prefixes, as system prompts do.
"""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable

import aiohttp

from sim.config import LoadConfig

PREFIXES = 4
PREFIX_WORDS = 256
TAIL_WORDS = (32, 96)
OUTPUT_TOKENS = (4, 20)
STREAMED_SHARE = 1 / 3
VOCABULARY = tuple(f"w{number}" for number in range(500))
PATHS = ("/v1/completions", "/v1/chat/completions")


class SelfLoad:
    """Asks `url()` for answers at a Poisson rate and counts what came of it in `outcomes`."""

    def __init__(self, config: LoadConfig, model: str, seed: int, url: Callable[[], str]) -> None:
        self.config = config
        self.outcomes: Counter[str] = Counter()
        self._model = model
        self._url = url
        self._rng = random.Random(seed)
        self._prefixes = [" ".join(self._rng.choices(VOCABULARY, k=PREFIX_WORDS)) for _ in range(PREFIXES)]
        self._in_flight: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Ask until cancelled; returns at once when the rate is 0."""
        if not self.config.requests_per_second:
            return
        clock = asyncio.get_running_loop().time
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:
            due = clock()
            try:
                while True:
                    config = self.config
                    rate = max(config.requests_per_second, 1e-3)
                    due = max(due + self._rng.expovariate(rate / config.burst), clock() - 1.0)
                    await asyncio.sleep(max(0.0, due - clock()))
                    for _ in range(self.config.burst):
                        self._ask(session)
            finally:
                for task in self._in_flight:
                    task.cancel()

    def _ask(self, session: aiohttp.ClientSession) -> None:
        if len(self._in_flight) >= self.config.max_in_flight:
            self.outcomes["not_sent"] += 1
            return
        task = asyncio.create_task(self._one(session))
        self._in_flight.add(task)
        task.add_done_callback(self._in_flight.discard)

    def _body(self) -> tuple[str, bytes, bool, bool]:
        rng = self._rng
        path = rng.choice(PATHS)
        leaves = rng.random() < self.config.abort_share
        streams = rng.random() < STREAMED_SHARE or leaves
        head, tail = rng.choice(self._prefixes), " ".join(rng.choices(VOCABULARY, k=rng.randint(*TAIL_WORDS)))
        body: dict[str, object] = {"model": self._model, "stream": streams}
        body["max_tokens"] = OUTPUT_TOKENS[1] if leaves else rng.randint(*OUTPUT_TOKENS)
        # Those who leave must find an answer long enough to leave.
        body["ignore_eos"] = leaves
        if path == PATHS[0]:
            body["prompt"] = f"{head} {tail}"
        else:
            body["messages"] = [{"role": "system", "content": head}, {"role": "user", "content": tail}]
        return path, json.dumps(body).encode(), streams, leaves

    async def _one(self, session: aiohttp.ClientSession) -> None:
        path, body, streams, leaves = self._body()
        try:
            async with session.post(
                self._url() + path,
                data=body,
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=self.config.timeout_seconds),
            ) as response:
                self.outcomes[await self._read(response, streams, leaves)] += 1
        except TimeoutError:
            self.outcomes["timed_out"] += 1
        except aiohttp.ClientError:
            self.outcomes["connection_failed"] += 1

    async def _read(self, response: aiohttp.ClientResponse, streams: bool, leaves: bool) -> str:
        if response.status != 200:
            await response.read()
            return f"http_{response.status}"
        if not streams:
            await response.read()
            return "ok"
        outcome = "ok"
        async for data in response.content.iter_any():
            if b'"error"' in data:
                outcome = "in_stream_error"
            elif leaves:
                response.close()
                return "left"
        return outcome
