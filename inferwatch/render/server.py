"""`python -m inferwatch.render`: dashboards as live pages on loopback, for machines without Grafana.

GET /<uid>?range=6h&theme=dark&service=llm draws a page now; GET / goes to the first dashboard. Links made for
Grafana, /d/<uid>?var-service=llm&from=<ms>&to=<ms>, show the same here. GET /runbooks/<Alert>.md is an alert's runbook.
"""

import argparse
import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from inferwatch.promapi import PromError, Prometheus
from inferwatch.render.html import html
from inferwatch.render.page import draw
from inferwatch.render.sources import DEFAULT_FOLDER, SourceError, load_all, seconds
from inferwatch.render.variables import VariableError, window

LOOPBACK = "127.0.0.1"
KEEP_SECONDS = 4.0
MOST_KEPT = 64
_RESERVED = {"range", "theme", "refresh", "from", "to", "orgId"}
_ALL = {"All", "$__all"}


class Pages:
    """Draws pages on request; one that was drawn a moment ago is given again."""

    def __init__(
        self, prometheus_url: str, folder: Path, scrape_seconds: int, runbooks: Path | None = None
    ) -> None:
        self.prometheus_url, self.folder, self.scrape_seconds = prometheus_url, folder, scrape_seconds
        self.runbooks = runbooks
        self._kept: dict[tuple[str, str], tuple[float, str]] = {}
        self._one_at_a_time = asyncio.Lock()

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application()
        app.router.add_get("/", self.index)
        app.router.add_get("/-/healthy", self.healthy)
        app.router.add_get("/{uid}", self.page)
        app.router.add_get("/d/{uid}", self.page)
        app.router.add_get("/d/{uid}/{slug}", self.page)
        app.router.add_get("/runbooks/{name}", self.runbook)
        return app

    async def healthy(self, request: web.Request) -> web.Response:
        """200 while the server runs."""
        del request
        return web.Response(text="ok\n")

    async def runbook(self, request: web.Request) -> web.Response:
        """One runbook as it stands in its file; 404 with the names that there are."""
        wanted = request.match_info["name"].removesuffix(".md")
        known = {file.stem: file for file in sorted(self.runbooks.glob("*.md"))} if self.runbooks else {}
        if wanted not in known:
            raise web.HTTPNotFound(text=f"no runbook {wanted!r}; there are: {', '.join(known) or 'none'}\n")
        return web.Response(text=known[wanted].read_text(encoding="utf-8"), content_type="text/plain")

    async def index(self, request: web.Request) -> web.Response:
        """To the first dashboard, the SLO overview where it exists."""
        del request
        uids = list(load_all(self.folder))
        raise web.HTTPFound("/" + next((u for u in uids if u.endswith("-slo")), uids[0]))

    async def page(self, request: web.Request) -> web.Response:
        """One dashboard, drawn now."""
        uid = request.match_info["uid"]
        key = (uid, request.query_string)
        async with self._one_at_a_time:
            drawn_at, text = self._kept.get(key, (0.0, ""))
            if time.monotonic() - drawn_at > KEEP_SECONDS:
                text = await asyncio.to_thread(self._draw, uid, request)
                if len(self._kept) >= MOST_KEPT:
                    self._kept.clear()
                self._kept[key] = (time.monotonic(), text)
        return web.Response(text=text, content_type="text/html")

    def _draw(self, uid: str, request: web.Request) -> str:
        dashboards = load_all(self.folder)
        if uid not in dashboards:
            raise web.HTTPNotFound(text=f"no dashboard {uid!r}; there are: {', '.join(dashboards)}\n")
        asked = request.query
        theme = asked.get("theme", "auto")
        if theme not in {"auto", "dark", "light"}:
            raise web.HTTPBadRequest(text=f"theme {theme!r}: give auto, dark or light\n")
        selection = {name: asked.getall(name) for name in asked if not _of_grafana(name)}
        selection |= _grafana_variables(request, dashboards[uid])
        try:
            start, end = _range(request)
            view = window(start, end, self.scrape_seconds)
            with Prometheus(self.prometheus_url) as prometheus:
                page = draw(dashboards[uid], prometheus, view, selection)
        except (SourceError, VariableError) as error:
            raise web.HTTPBadRequest(text=f"{error}\n") from error
        except PromError as error:
            raise web.HTTPBadGateway(text=f"Prometheus cannot be asked: {error}\n") from error
        query = f"?{request.query_string}" if request.query_string else ""
        links = [(one["title"], f"/{name}{query}") for name, one in dashboards.items()]
        return html(page, links=links, refresh_seconds=max(view.step_seconds, 15), theme=theme)


def _of_grafana(name: str) -> bool:
    return name in _RESERVED or name.startswith("var-")


def _grafana_variables(request: web.Request, dashboard: Mapping[str, Any]) -> dict[str, list[str]]:
    """Variables of a link made for Grafana, which leaves out what a dashboard does not have."""
    names = [v["name"] for v in dashboard["templating"]["list"] if v["type"] != "datasource"]
    picked = {
        name: [v for v in request.query.getall(f"var-{name}", []) if v and v not in _ALL] for name in names
    }
    return {name: values for name, values in picked.items() if values}


def _range(request: web.Request) -> tuple[float, float]:
    """Unix seconds of start and end: from= and to= in milliseconds, as Grafana writes moments, else range=."""
    asked, now = request.query, time.time()
    if asked.get("from", "").isdecimal():
        end = int(asked["to"]) / 1000 if asked.get("to", "").isdecimal() else now
        start = int(asked["from"]) / 1000
        if start >= end:
            raise SourceError(f"from {asked['from']} is not before to; give milliseconds, the earlier first")
        return start, end
    return now - seconds(asked.get("range", "1h")), now


def main() -> None:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m inferwatch.render", description=__doc__)
    parser.add_argument("--prometheus", required=True, help="base URL, for example http://127.0.0.1:9090")
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    parser.add_argument("--dashboards", type=Path, default=DEFAULT_FOLDER, help="folder of JSON files")
    parser.add_argument("--runbooks", type=Path, help="folder of an alert's runbook each, as Markdown")
    parser.add_argument("--scrape-seconds", type=int, default=5, help="how often Prometheus scrapes")
    given = parser.parse_args()
    pages = Pages(given.prometheus, given.dashboards, given.scrape_seconds, given.runbooks)
    web.run_app(pages.application(), host=LOOPBACK, port=given.port, print=None)
