"""`python -m inferwatch.scenarios.recorded FILE`: moves the numbers of recorded hosts and engines, and serves the pages.

FILE (JSON) is read again whenever it changed: {"port": 1, "host": FOLDER, "rows": {ROW: {"core": {…}, "tenant": {…},
"page": {…}, "ports": [2, …], "argv": […], "requests_per_second": 4}}}. Under /read it answers as a remote store of
Prometheus that takes `SLOW_STORE_SECONDS` for an empty answer.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from aiohttp import web

from inferwatch.scenarios.host import Host
from inferwatch.scenarios.page import Served
from inferwatch.scenarios.shown import Core, Page, Tenant

HOST = "127.0.0.1"
TICK_SECONDS = 0.1
TICKS_A_LOOK = 5
"""What is read seldom is written, and FILE read, every so many ticks."""
SLOW_STORE_SECONDS = 8.0
EMPTY_ANSWER = b"\x02\x04\x0a\x00"
"""Snappy's block format of a ReadResponse that holds one result without series: length 2, a literal of 2, 0a 00."""


class World:
    """What FILE says now, and what became of it over time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        rows = self.content["rows"]
        self.pages = {
            (row, port): Served(told["requests_per_second"] / len(told["ports"]))
            for row, told in rows.items()
            for port in told.get("ports", ())
        }
        self._host = Host(
            Path(self.content["host"]),
            {row: tuple(told["argv"]) for row, told in rows.items() if "argv" in told},
        )
        self._last = time.monotonic()
        self._ticks = 0

    def tick(self) -> None:
        """Let the time pass that has passed, under the shares of before; now and then read FILE again."""
        now = time.monotonic()
        seconds, self._last = now - self._last, now
        rows = self.content["rows"]
        self._host.advance(
            seconds,
            {row: Core(**told["core"]) for row, told in rows.items() if "core" in told},
            {row: Tenant(**told["tenant"]) for row, told in rows.items() if "tenant" in told},
        )
        self._host.write_cores()
        for served in self.pages.values():
            served.advance(seconds)
        if self._ticks % TICKS_A_LOOK == 0:
            self._host.write_rest()
            self._look()
        self._ticks += 1

    def _look(self) -> None:
        self.content = json.loads(self._path.read_text(encoding="utf-8"))
        for (row, port), served in self.pages.items():
            served.page = self._page(row, port)

    def _page(self, row: str, port: int) -> Page:
        """Only the last engine of a row has other bounds than were recorded."""
        told = self.content["rows"][row]
        page = {**told["page"], "bounds": tuple(told["page"]["bounds"])}
        return Page(**(page if port == told["ports"][-1] else page | {"bounds": ()}))


async def _ok(_: web.Request) -> web.Response:
    return web.Response(text="ok\n")


async def _slow_store(request: web.Request) -> web.Response:
    await request.read()
    await asyncio.sleep(SLOW_STORE_SECONDS)
    headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"}
    return web.Response(body=EMPTY_ANSWER, headers=headers)


def _engine(served: Served) -> web.Application:
    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=served.text())

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/health", _ok)])
    return app


def _own() -> web.Application:
    app = web.Application()
    app.add_routes([web.get("/-/ready", _ok), web.post("/read", _slow_store)])
    return app


@contextlib.asynccontextmanager
async def _listening(app: web.Application, port: int) -> AsyncIterator[None]:
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    try:
        yield
    finally:
        await runner.cleanup()


async def run(path: Path) -> None:
    """Serve and let time pass until the process is ended."""
    world = World(path)
    world.tick()
    async with contextlib.AsyncExitStack() as stack:
        for (_, port), served in world.pages.items():
            await stack.enter_async_context(_listening(_engine(served), port))
        await stack.enter_async_context(_listening(_own(), world.content["port"]))
        while True:
            await asyncio.sleep(TICK_SECONDS)
            world.tick()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
