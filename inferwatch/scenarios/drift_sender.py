"""`python -m inferwatch.scenarios.drift_sender PORT`: tells drift exporters of embeddings and retrievals, by our client.

POST /sent, body {NAME: {"url": …, fields of drift_shape.Sent}}: what is sent for NAME from now on. GET /sent: what became
of the calls so far, by NAME. All send the same healthy vectors, in every run.
"""

import asyncio
import json
import random
import sys
from dataclasses import asdict

import numpy as np
from aiohttp import web

from inferwatch.drift_client import DriftClient, Stats
from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.drift_vectors import HEALTHY_SEED, Space, unusable

HOST = "127.0.0.1"
TICK_SECONDS = 1.0
GOOD, LOW = (0.82, 0.74, 0.7, 0.66, 0.61), (0.21, 0.18, 0.17, 0.12, 0.1)
"""Similarities of what a retrieval finds; an empty one finds nothing."""
POOR: tuple[tuple[float, ...], ...] = (LOW, ())
QUERY_CHARACTERS = 60


class Service:
    """One name: its exporter, and what it sends now."""

    def __init__(self, space: Space) -> None:
        self._random = np.random.default_rng(HEALTHY_SEED)
        self._chance = random.Random(HEALTHY_SEED)
        self._space = space
        self._client: DriftClient | None = None
        self._where = ("", "")
        self._sent = Sent()
        self._found = 0
        self._before = Stats()

    def show(self, url: str, sent: Sent) -> None:
        """From now on this is sent, to that exporter."""
        if (url, sent.model) != self._where:
            self.close()
            self._client = DriftClient(url, sent.model)
            self._where = (url, sent.model)
        self._sent = sent

    def tell(self) -> None:
        """One second's vectors and retrievals; never waits."""
        if self._client is None:
            return
        sent = self._sent
        vectors = self._space.vectors(self._random, sent.vectors, sent.shifted)
        self._client.embeddings(np.concatenate([vectors, unusable(sent.unusable)]))
        for _ in range(sent.retrievals):
            self._found += 1
            is_poor = self._chance.random() < sent.poor
            scores = POOR[self._found % len(POOR)] if is_poor else GOOD
            self._client.retrieval(scores, seconds=sent.retrieval_seconds, query_characters=QUERY_CHARACTERS)

    def stats(self) -> dict[str, int]:
        """Calls so far by what became of them."""
        now = asdict(self._client.stats()) if self._client else {}
        return {what: count + now.get(what, 0) for what, count in asdict(self._before).items()}

    def close(self) -> None:
        """End the client; what it still holds is dropped, and counted."""
        if self._client is not None:
            self._client.close(timeout_seconds=0.5)
            self._before, self._client = Stats(**self.stats()), None


class Sender:
    """All names, told once a second."""

    def __init__(self) -> None:
        self._space = Space()
        self.services: dict[str, Service] = {}

    def show(self, name: str, url: str, sent: Sent) -> None:
        """From now on *name* sends this."""
        self.services.setdefault(name, Service(self._space)).show(url, sent)

    async def run(self) -> None:
        """Tell every second until cancelled; seconds that were missed are not made up for."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for service in list(self.services.values()):
                service.tell()
            due = max(due + TICK_SECONDS, loop.time())
            await asyncio.sleep(due - loop.time())


async def serve(port: int) -> None:
    """Listen and send until cancelled."""
    sender = Sender()

    async def sent(request: web.Request) -> web.Response:
        if request.method == "POST":
            for name, told in json.loads(await request.read()).items():
                sender.show(name, told.pop("url"), Sent(**told))
        return web.json_response({name: one.stats() for name, one in sender.services.items()})

    app = web.Application()
    app.router.add_route("*", "/sent", sent)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    await sender.run()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
