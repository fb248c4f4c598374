"""Alertmanager's webhook calls -> one JSON line each, with the time it came, for status and the loop."""

import json
import time
from pathlib import Path
from typing import Any

import click
from aiohttp import web

RECEIVED_AT = "received_at"
MAX_BODY_BYTES = 4 * 1024 * 1024


def application(file: Path) -> web.Application:
    """
    A receiver that appends to *file*.

    POST /notify takes Alertmanager's webhook body (400 when it is none); GET /-/healthy answers 200.
    """

    async def notify(request: web.Request) -> web.Response:
        try:
            body = await request.json()
        except ValueError:
            return web.Response(status=400, text="not JSON; send Alertmanager's webhook body\n")
        if not isinstance(body, dict) or not isinstance(body.get("alerts"), list):
            return web.Response(status=400, text="no list `alerts`; send Alertmanager's webhook body\n")
        line = json.dumps({RECEIVED_AT: time.time(), **body}, sort_keys=True)
        with file.open("a", encoding="utf-8") as sink:
            sink.write(line + "\n")
        return web.Response(status=204)

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_post("/notify", notify)
    app.router.add_get("/-/healthy", healthy)
    return app


def read(file: Path) -> list[dict[str, Any]]:
    """All notifications so far, oldest first; empty when none came. A line still being written is left out."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    whole = text[: text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=int, required=True, help="Port to listen on.")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), required=True)
def main(host: str, port: int, file: Path) -> None:
    """Run the local webhook receiver until a signal ends it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    web.run_app(application(file), host=host, port=port, access_log=None, print=None)


if __name__ == "__main__":
    main()
