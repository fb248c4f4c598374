"""`python -m inferwatch.scenarios.rag_users PORT`: asks RAG services at a steady pace, as POST /users says.

Body: {NAME: {"urls": […], "per_second": 1, "together": 1, "fresh": false, "upload_seconds": 0}}; what is there for NAME
is replaced. GET /users: answers so far by NAME and status.
"""

import asyncio
import itertools
import json
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
from aiohttp import web

HOST = "127.0.0.1"
ROUTE = "/v1/rag/answer"
TIMEOUT_SECONDS = 30.0
QUESTIONS = tuple(
    f"What does the reference say about {topic}?"
    for topic in (
        "assert", "assignment", "attribute access", "await", "binary operators", "bit operations",
        "the break statement", "calls", "class definitions", "comparisons", "context managers", "del",
    )
)  # fmt: skip


class Crowd:
    """Everybody who asks."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._loops: dict[str, asyncio.Task[None]] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count()
        self.answers: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def show(self, name: str, told: dict[str, Any]) -> None:
        """From now on *name* asks as *told*; requests under way go on."""
        if old := self._loops.pop(name, None):
            old.cancel()
        if told["urls"]:
            self._loops[name] = asyncio.create_task(self._pace(name, told))

    async def _pace(self, name: str, told: dict[str, Any]) -> None:
        urls, together = itertools.cycle(told["urls"]), told["together"]
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            for _ in range(together):
                task = asyncio.create_task(self._ask(name, next(urls), told))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
            due = max(due + together / told["per_second"], loop.time())
            await asyncio.sleep(due - loop.time())

    async def _ask(self, name: str, url: str, told: dict[str, Any]) -> None:
        number = next(self._numbers)
        question = QUESTIONS[number % len(QUESTIONS)] + (f" Case {number}." if told["fresh"] else "")
        body = json.dumps({"question": question, "stream": False}).encode()
        data = _late(body, told["upload_seconds"]) if told["upload_seconds"] else body
        try:
            async with self._session.post(url + ROUTE, data=data) as answer:
                await answer.read()
                self.answers[name][str(answer.status)] += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            # A service that is down has no other answer; it is counted, and the run is about it.
            self.answers[name][type(error).__name__] += 1


async def _late(body: bytes, seconds: float) -> AsyncIterator[bytes]:
    """The body, whose end comes late."""
    yield body[:1]
    await asyncio.sleep(seconds)
    yield body[1:]


async def _serve(port: int) -> None:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    connector = aiohttp.TCPConnector(
        limit=0, force_close=True
    )  # what one row does to its connections is its own
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        crowd = Crowd(session)

        async def users(request: web.Request) -> web.Response:
            if request.method == "POST":
                for name, told in (await request.json()).items():
                    crowd.show(name, told)
            return web.json_response(crowd.answers)

        app = web.Application()
        app.router.add_route("*", "/users", users)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
