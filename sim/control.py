"""The control port: which scenario is on, and switching it. It stays open when the server is down."""

import json

from aiohttp import web

from sim.scenarios import SCENARIOS
from sim.server import Server


class Control:
    """GET and POST /sim/scenario for one server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def application(self) -> web.Application:
        """The control routes."""
        app = web.Application()
        app.router.add_get("/sim/scenario", self.show)
        app.router.add_post("/sim/scenario", self.switch)
        return app

    async def show(self, request: web.Request) -> web.Response:
        """Say what is on, what there is, and what came of the built-in load."""
        return web.json_response(self._state())

    async def switch(self, request: web.Request) -> web.Response:
        """Switch to `{"name": ..., "params": {...}}`; 400 says what is wrong."""
        try:
            body = json.loads(await request.read())
            if not isinstance(body, dict) or not isinstance(body.get("name"), str):
                raise ValueError('give a JSON object like {"name": "slow_decode", "params": {"factor": 3}}')
            params = body.get("params", {})
            if not isinstance(params, dict):
                raise ValueError(f"params={params!r}: give a JSON object of numbers")
            await self._server.switch(body["name"], params)
        except ValueError as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(self._state())

    def _state(self) -> dict[str, object]:
        server = self._server
        return {
            "simulated": True,
            "name": server.scenario.name,
            "params": server.params,
            "since_unix_seconds": server.since,
            "url": server.url(),
            "model": server.base.engine.model,
            "self_load": {
                "requests_per_second": server.load.config.requests_per_second,
                "outcomes": dict(sorted(server.load.outcomes.items())),
            },
            "scenarios": [
                {
                    "name": scenario.name,
                    "summary": scenario.summary,
                    "needs_load": scenario.needs_load,
                    "params": {
                        p.name: {"default": p.default, "from": p.minimum, "to": p.maximum, "is": p.meaning}
                        for p in scenario.params
                    },
                }
                for scenario in SCENARIOS
            ],
        }
