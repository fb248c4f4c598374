"""The drift exporter: /metrics, the ingest port, the tap, and the evaluation that runs beside them."""

import argparse
import asyncio
import logging
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from prometheus_client import CollectorRegistry
from threadpoolctl import threadpool_limits

from exporters.configfile import ConfigError
from exporters.drift.config import Config, ingest_token, load_config, references
from exporters.drift.ingest import bearer, ingest_app
from exporters.drift.profile import Profile
from exporters.drift.retrieval import RetrievalHealth
from exporters.drift.series import DriftCollector
from exporters.drift.streams import Streams
from exporters.drift.tap import Proxy, decoder, tap_app
from exporters.web import Listen, ListenError, own_routes, parse_listen, serve
from exporters.webconfig import WebConfig, load_web_config, tls_context
from slo import spec
from slo.signals import Drift

log = logging.getLogger(__name__)
Started = Callable[[str, str], None]


@dataclass(frozen=True)
class Parts:
    """What one exporter is made of, checked before anything listens."""

    config: Config
    profiles: Mapping[str, Profile]
    token: str | None
    drift: Drift
    tls: ssl.SSLContext | None = None


def prepare(config: Config, folder: Path, drift: Drift, web_config: WebConfig | None = None) -> Parts:
    """Load references and secrets, whose paths are relative to *folder*. Raises ConfigError, ListenError."""
    host = parse_listen(config.ingest.listen).host
    token = ingest_token(config.ingest, folder, host)
    return Parts(
        config, references(config, folder), token, drift, tls_context(web_config) if web_config else None
    )


def drift_app(parts: Parts, started: Started | None = None) -> web.Application:
    """
    The application of /metrics; ingest, tap and evaluation run as long as it does.

    *started* is told "ingest" and "tap" with their base URLs. Ready: always, once it runs.
    """
    registry = CollectorRegistry()
    streams = Streams(parts.drift, parts.profiles, parts.config.bounds())
    registry.register(DriftCollector(streams))
    health = RetrievalHealth(registry, parts.drift.retrieval.low_score)
    ingest = parts.config.ingest
    apps = {
        "ingest": (
            ingest_app(streams, health, bearer(parts.token, registry), ingest.max_body_bytes),
            ingest.listen,
        )
    }
    executor = None
    if parts.config.tap is not None:
        executor = decoder()
        apps["tap"] = (tap_app(Proxy(parts.config.tap, streams, registry, executor)), parts.config.tap.listen)

    async def running(_: web.Application) -> AsyncIterator[None]:
        runners = [
            await _listening(n, app, parse_listen(at), parts.tls, started) for n, (app, at) in apps.items()
        ]
        task = asyncio.create_task(streams.run(), name="drift evaluation")
        task.add_done_callback(_died)
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for runner in runners:
            await runner.cleanup()
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)

    app = web.Application()
    app.cleanup_ctx.append(running)
    app.router.add_routes(own_routes(registry, ready=lambda: True))
    return app


async def _listening(
    name: str, app: web.Application, listen: Listen, tls: ssl.SSLContext | None, started: Started | None
) -> web.AppRunner:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=5.0)
    await runner.setup()
    await web.TCPSite(runner, listen.host, listen.port, ssl_context=tls).start()
    url = f"{'https' if tls else 'http'}://{listen.host}:{runner.addresses[0][1]}"
    log.info("%s: listening on %s", name, url)
    if started is not None:
        started(name, url)
    return runner


def _died(task: "asyncio.Task[None]") -> None:
    """The evaluation never ends by itself: without it every state would be stale, so the exporter ends too."""
    if not task.cancelled() and task.exception() is not None:
        log.critical("the evaluation failed; ending", exc_info=task.exception())
        raise SystemExit(1)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m exporters drift", description="Hold embeddings against a reference of healthy ones."
    )
    parser.add_argument("--config", type=Path, help="drift.yml: references, ingest, tap, limits")
    parser.add_argument("--listen", default="127.0.0.1:9490", help="HOST:PORT of /metrics (%(default)s)")
    for port in ("ingest", "tap"):
        parser.add_argument(f"--{port}", metavar="HOST:PORT", help=f"in place of {port}.listen of the config")
    parser.add_argument("--spec", type=Path, default=spec.DEFAULT_PATH, help="slo.yaml: its drift section")
    parser.add_argument(
        "--web-config", type=Path, help="TLS and basic auth, in the exporter toolkit's format"
    )
    return parser


async def _run(options: argparse.Namespace) -> None:
    listen = parse_listen(options.listen)
    web_config = load_web_config(options.web_config) if options.web_config else None
    config = (load_config(options.config) if options.config else Config()).at(options.ingest, options.tap)
    folder = options.config.parent if options.config else Path()
    parts = prepare(config, folder, spec.load(options.spec).drift, web_config)
    await serve(drift_app(parts), listen, web_config)


def main(argv: Sequence[str]) -> int:
    """Serve until SIGINT or SIGTERM; 2: the command line or a file cannot be used."""
    options = _parser().parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s drift: %(message)s")
    try:
        with threadpool_limits(1):  # small matrices; the machine's cores are for the engine
            asyncio.run(_run(options))
    except (ConfigError, ListenError, spec.SpecError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"--listen {options.listen}: {error}; choose free addresses and ports\n")
        return 1
    return 0
