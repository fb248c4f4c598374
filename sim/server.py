"""The life of one simulated server: its port opens and closes, its process restarts."""

import asyncio
import logging
import socket
import time
from dataclasses import replace

from aiohttp import web

from sim import scenarios
from sim.api import Api
from sim.config import SimConfig
from sim.engine import Engine
from sim.load import SelfLoad
from sim.metrics import EngineMetrics
from sim.process import process_registry

log = logging.getLogger("sim")


class Server:
    """A simulated server under one scenario at a time. Use as `async with Server(config)`."""

    def __init__(self, config: SimConfig) -> None:
        self.base = config
        self.config = config
        self.scenario = scenarios.find("healthy")
        self.params: dict[str, float] = {}
        self.since = time.time()
        self.port = config.port
        self.load = SelfLoad(config.load, config.engine.model, config.engine.seed, self.url)
        self._runner: web.AppRunner | None = None
        self._lock = asyncio.Lock()
        self._restarting: asyncio.Task[None] | None = None
        self._load_task: asyncio.Task[None] | None = None
        self._engine_task: asyncio.Task[None] | None = None
        self.api: Api

    def url(self) -> str:
        """Where clients ask."""
        return f"http://{self.config.host}:{self.port}"

    async def __aenter__(self) -> "Server":
        self._boot()
        await self._open()
        self._load_task = asyncio.create_task(self.load.run())
        return self

    async def __aexit__(self, *exc: object) -> None:
        await _cancelled(self._restarting, self._load_task, self._engine_task)
        await self._close()

    async def switch(self, name: str, given: dict[str, object]) -> None:
        """Leave the present scenario for another, from the next event on.

        Raises:
            ValueError: an unknown scenario or parameter, or one that needs built-in load.
        """
        scenario = scenarios.find(name)
        params = scenario.values(given)
        if scenario.needs_load and not self.base.load.requests_per_second:
            raise ValueError(f"scenario {name} moves the built-in clients: start with --self-load above 0")
        async with self._lock:
            await _cancelled(self._restarting)
            self._restarting = None
            self._apply(scenario, params)
            if not self.config.fault.listening:
                await self._close()
            elif self.config.fault.restarts:
                self._restarting = asyncio.create_task(self._restart())
            else:
                await self._open()

    def _apply(self, scenario: scenarios.Scenario, params: dict[str, float]) -> None:
        self.scenario, self.params, self.since = scenario, params, time.time()
        self.config = scenario.apply(self.base, params)
        self.load.config = self.config.load
        self.api.fault = self.config.fault
        self.api.engine.reconfigure(self.config.engine)
        log.info("simulated: scenario %s %s", scenario.name, params or "")

    def _boot(self) -> None:
        """Begin a process: a new engine, counters at 0, an empty cache."""
        if self._engine_task is not None:
            self._engine_task.cancel()
        registry = process_registry()
        metrics = EngineMetrics(self.base.engine, registry)
        engine = Engine(self.base.engine, metrics)
        self.api = Api(engine, registry)
        self.api.fault = self.config.fault
        self._engine_task = asyncio.create_task(engine.run())

    async def _open(self) -> None:
        if self._runner is not None:
            return
        # A client that leaves must cancel its handler, or its request would run to the end.
        runner = web.AppRunner(
            self.api.application(), handler_cancellation=True, shutdown_timeout=0.05, access_log=None
        )
        try:
            await runner.setup()
            await web.TCPSite(runner, self.config.host, self.port, backlog=512).start()
        except BaseException:  # also when cancelled half way: a port left open would be nobody's
            await runner.cleanup()
            raise
        if self.port == 0:
            self.port = runner.addresses[0][1]
        self._runner = runner

    async def _close(self) -> None:
        """Refuse new connections and cut the ones there are."""
        if self._runner is None:
            return
        runner, self._runner = self._runner, None
        await runner.cleanup()

    async def _restart(self) -> None:
        fault = self.config.fault
        for round_number in range(fault.restarts):
            if round_number:
                await asyncio.sleep(fault.up_seconds)
            await self._close()
            self._boot()
            await asyncio.sleep(fault.down_seconds)
            await self._open()
        self._restarting = None
        self._apply(scenarios.find("healthy"), {})


async def _cancelled(*tasks: asyncio.Task[None] | None) -> None:
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    # What a task failed with before is raised here; its cancellation is not.
    for outcome in await asyncio.gather(*running, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome


def free_port(host: str) -> int:
    """A port that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def with_free_ports(config: SimConfig) -> SimConfig:
    """Put a free port in place of each 0."""
    return replace(
        config,
        port=config.port or free_port(config.host),
        control_port=config.control_port or free_port(config.host),
    )
