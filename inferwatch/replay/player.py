"""A recording -> an HTTP server that answers /metrics as the engine did, second by second, from POST /play on."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import click
from aiohttp import web

from inferwatch.replay.recording import Page, Recording, read

_TEXT = {"Content-Type": "text/plain; version=1.0.0; charset=utf-8"}


class Player:
    """Plays one recording on one port; the port is closed where the engine was not there."""

    def __init__(self, recording: Recording, host: str, port: int) -> None:
        self._recording = recording
        self._host, self._port = host, port
        self._page: Page = recording.pages[0]
        self._runner: web.AppRunner | None = None
        self.started_at: float | None = None

    async def open(self) -> None:
        """Show the first page and wait."""
        await self._show(self._recording.pages[0])

    async def play(self) -> None:
        """Show each page at its time; returns after the last one was shown as long as pages are apart."""
        self.started_at = time.time()
        begun = asyncio.get_running_loop().time()
        for page in self._recording.pages:
            await asyncio.sleep(max(0.0, begun + page.at_seconds - asyncio.get_running_loop().time()))
            await self._show(page)

    async def close(self) -> None:
        """Refuse connections."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _show(self, page: Page) -> None:
        self._page = page
        if page.path is None:
            await self.close()
        elif self._runner is None:
            app = web.Application()
            app.add_routes([web.get("/metrics", self._metrics), web.get("/version", self._version)])
            self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await self._runner.setup()
            await web.TCPSite(self._runner, self._host, self._port).start()

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=self._page.text(), headers=_TEXT)

    async def _version(self, _: web.Request) -> web.Response:
        if not self._recording.version:
            return web.json_response({"detail": "not recorded"}, status=404)
        return web.json_response({"version": self._recording.version})


def control(player: Player) -> web.Application:
    """POST /play begins, once; GET /-/ready answers when the first page can be read."""
    playing: list[asyncio.Task[None]] = []

    async def life(_: web.Application) -> AsyncIterator[None]:
        await player.open()
        yield
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        await player.close()

    async def play(_: web.Request) -> web.Response:
        if not playing:
            playing.append(asyncio.create_task(player.play()))
        return web.Response(status=204)

    async def ready(_: web.Request) -> web.Response:
        return web.Response(text="ready\n")

    app = web.Application()
    app.cleanup_ctx.append(life)
    app.add_routes([web.post("/play", play), web.get("/-/ready", ready)])
    return app


@click.command()
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--name", required=True, help="Which recording of the folder.")
@click.option("--port", type=int, required=True, help="Loopback port that plays the engine.")
@click.option("--control-port", type=int, required=True, help="Loopback port of /play.")
def main(folder: Path, name: str, port: int, control_port: int) -> None:
    """Play a recorded engine until a signal ends it."""
    recording = next(one for one in read(folder) if one.name == name)
    player = Player(recording, "127.0.0.1", port)
    web.run_app(control(player), host="127.0.0.1", port=control_port, access_log=None, print=None)


if __name__ == "__main__":
    main()
