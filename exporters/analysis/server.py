"""`python -m exporters analysis`: reads Prometheus on a schedule and serves what its windows say."""

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector

from exporters.analysis import versions
from exporters.analysis.findings import find
from exporters.analysis.history import read
from exporters.analysis.series import AnalysisCollector, State
from exporters.configfile import ConfigError
from exporters.web import ListenError, own_routes, parse_listen, serve
from exporters.webconfig import load_web_config
from inferwatch.promapi import PromError, Prometheus
from slo import spec
from slo.spec import Spec

BELIEVED_ROUNDS = 5
log = logging.getLogger(__name__)


def read_once(state: State, prometheus: Prometheus, promises: Spec, now: float) -> None:
    """Bring *state* up to date, or count the failure and keep what was known."""
    began, config = time.monotonic(), promises.analysis
    try:
        moments = read(prometheus, end=now, lookback_seconds=config.lookback, window_seconds=config.window)
        step = promises.intervals.slow_evaluation_seconds
        found = versions.read(prometheus, promises.rag, step_seconds=step, at=now)
    except PromError as error:
        state.errors += 1
        log.warning("reading Prometheus failed, trying again in %d s: %s", config.every, error)
        return
    state.findings = {key: find(windows, config) for key, windows in moments.items()}
    state.versions = found
    state.made_at, state.duration_seconds = now, time.monotonic() - began


def analysis_app(prometheus: Prometheus, promises: Spec) -> web.Application:
    """The application; it reads every *analysis.every* seconds. Ready: one reading was good."""
    state, config = State(), promises.analysis
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(AnalysisCollector(state, BELIEVED_ROUNDS * config.every, time.time))

    async def rounds() -> None:
        while True:
            await asyncio.to_thread(read_once, state, prometheus, promises, time.time())
            await asyncio.sleep(config.every)

    async def running(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(rounds(), name="analysis rounds")
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    app = web.Application()
    app.cleanup_ctx.append(running)
    app.router.add_routes(own_routes(registry, ready=lambda: state.made_at is not None))
    return app


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m exporters analysis",
        description="Sort recorded windows by batch size, request rate, prompt length and cache hits; "
        "hold embedding versions against each other.",
    )
    parser.add_argument("--prometheus", required=True, help="base URL, for example http://127.0.0.1:9090")
    parser.add_argument("--listen", default="127.0.0.1:9486", help="HOST:PORT to serve on (%(default)s)")
    parser.add_argument(
        "--spec", type=Path, default=spec.DEFAULT_PATH, help="slo.yaml: its analysis and rag sections"
    )
    parser.add_argument(
        "--web-config", type=Path, help="TLS and basic auth, in the exporter toolkit's format"
    )
    return parser


async def _run(options: argparse.Namespace) -> None:
    listen = parse_listen(options.listen)
    web_config = load_web_config(options.web_config) if options.web_config else None
    promises = spec.load(options.spec)
    with Prometheus(options.prometheus, timeout_seconds=30.0) as prometheus:
        await serve(analysis_app(prometheus, promises), listen, web_config)


def main(argv: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM; 2: the command line or a file cannot be used."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s analysis: %(message)s")
    try:
        asyncio.run(_run(options))
    except (ConfigError, ListenError, PromError, spec.SpecError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"--listen {options.listen}: {error}; choose a free address and port\n")
        return 2
    return 0
