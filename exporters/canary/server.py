"""A runner behind HTTP: /metrics with every target's series and the targets file's state, health, readiness."""

import asyncio
from collections.abc import AsyncIterator, Iterator

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from exporters.canary.runner import Runner
from exporters.canary.series import CanaryCollector
from exporters.canary.targets import TargetsFile
from exporters.web import own_routes
from slo.names import canary as names


class TargetsFileCollector(Collector):
    """Whether the targets file can be used, and how often it could not."""

    def __init__(self, file: TargetsFile) -> None:
        self._file = file

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            names.TARGETS, "Targets of the last good targets file.", value=len(self._file.targets)
        )
        valid = GaugeMetricFamily(
            names.TARGETS_FILE_VALID,
            "Whether the targets file as it is now could be used; absent before it was read.",
        )
        if self._file.valid is not None:
            valid.add_metric([], float(self._file.valid))
        yield valid
        yield CounterMetricFamily(
            names.TARGETS_FILE_ERRORS.removesuffix("_total"),
            "Times that a changed targets file could not be used; the targets known before are kept.",
            value=self._file.errors,
        )


def canary_app(runner: Runner) -> web.Application:
    """The application; *runner* runs as long as it does. Ready: the targets file was read once."""
    registry = CollectorRegistry()
    registry.register(CanaryCollector(lambda: runner.records))
    registry.register(TargetsFileCollector(runner.file))

    async def running(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(runner.run(), name="canary runner")
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    app = web.Application()
    app.cleanup_ctx.append(running)
    app.router.add_routes(own_routes(registry, ready=lambda: runner.file.loaded))
    return app
