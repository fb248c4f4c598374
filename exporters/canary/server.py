"""A runner behind HTTP: /metrics with every target's series and the targets file's state, health, readiness."""

import argparse
import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import aiohttp
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from exporters.canary.access import accessor, tls_contexts
from exporters.canary.request import Api, Asker
from exporters.canary.runner import Runner
from exporters.canary.schedule import Schedule
from exporters.canary.series import CanaryCollector
from exporters.canary.targets import Target, TargetsFile
from exporters.configfile import ConfigError
from exporters.engine.config import DEFAULT_PATH, Config, load_config
from exporters.web import ListenError, own_routes, parse_listen, serve
from exporters.webconfig import load_web_config
from slo import spec
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


def make_runner(
    session: aiohttp.ClientSession, file: TargetsFile, schedule: Schedule, config: Config, api: Api
) -> Runner:
    """A runner whose askers share *session* and *config*; raises ConfigError for unusable TLS files."""
    contexts, aliases = tls_contexts(config), config.aliases()

    def asker(target: Target) -> Asker:
        access = accessor(target, config, contexts)
        return Asker(session, access, schedule.timeout_seconds, api, aliases)

    return Runner(file, schedule, asker)


def client_session() -> aiohttp.ClientSession:
    """A session that opens a connection of its own for each request, as a new client would."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=0),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m exporters canary", description="Ask each engine for one token, on a schedule."
    )
    parser.add_argument(
        "--targets", type=Path, required=True, help="file_sd JSON that Prometheus reads for the engines"
    )
    parser.add_argument("--listen", default="127.0.0.1:9482", help="HOST:PORT to serve on (%(default)s)")
    parser.add_argument(
        "--config",
        type=Path,
        default=DEFAULT_PATH,
        help="allowed targets and modules, as of the engine exporter",
    )
    parser.add_argument("--spec", type=Path, default=spec.DEFAULT_PATH, help="slo.yaml: its canary section")
    parser.add_argument(
        "--api", choices=("completions", "chat"), default="completions", help="what to ask (%(default)s)"
    )
    parser.add_argument(
        "--web-config", type=Path, help="TLS and basic auth, in the exporter toolkit's format"
    )
    return parser


async def _run(options: argparse.Namespace) -> None:
    listen = parse_listen(options.listen)
    web_config = load_web_config(options.web_config) if options.web_config else None
    config = load_config(options.config)
    asked = spec.load(options.spec).canary
    schedule = Schedule(asked.interval_seconds, asked.timeout_seconds, asked.backoff_max_seconds)
    async with client_session() as session:
        runner = make_runner(session, TargetsFile(options.targets), schedule, config, options.api)
        await serve(canary_app(runner), listen, web_config)


def main(argv: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM; 2: the command line or a file cannot be used."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s canary: %(message)s")
    try:
        asyncio.run(_run(options))
    except (ConfigError, ListenError, spec.SpecError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"--listen {options.listen}: {error}; choose a free address and port\n")
        return 1
    return 0
