"""`python -m exporters engine`: flags to a prober, served as GET /probe?target=URL[&module=NAME]."""

import argparse
import asyncio
import logging
import math
import sys
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    PlatformCollector,
    ProcessCollector,
    Summary,
    disable_created_metrics,
)

from exporters.configfile import ConfigError
from exporters.engine.config import DEFAULT_MODULE, DEFAULT_PATH, Config, load_config
from exporters.engine.fetch import Upstream
from exporters.engine.labels import LabelCache
from exporters.engine.probe import Prober
from exporters.engine.targets import Resolve, TargetRefused, system_resolve
from exporters.web import ListenError, exposition, own_routes, parse_listen, serve
from exporters.webconfig import load_web_config
from slo.names import engine as names

TIMEOUT_HEADER = "X-Prometheus-Scrape-Timeout-Seconds"
_RESOLVER_THREADS = 32  # name look-ups block; a slow one must not hold up the others
_INDEX = """<!doctype html><title>Inferwatch engine exporter</title><h1>Inferwatch engine exporter</h1>
<p><code>/probe?target=http://HOST:PORT</code> reads an engine. Own metrics: <a href="/metrics">/metrics</a>.</p>
"""
log = logging.getLogger(__name__)


class OwnMetrics:
    """The exporter's own metrics; every result exists at 0 from the start."""

    def __init__(self, cache: LabelCache) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.probes = Counter(
            names.EXPORTER_PROBES_TOTAL, "Probes by result.", [names.LABEL_RESULT], registry=self.registry
        )
        for result in ("success", *names.PROBE_REASONS):
            self.probes.labels(result)
        self.refused = Counter(
            names.EXPORTER_REFUSED_TOTAL,
            "Requests answered 400: target not allowed or not readable.",
            registry=self.registry,
        )
        self.translate = Summary(
            names.EXPORTER_TRANSLATE_SECONDS, "Time to translate one page.", registry=self.registry
        )
        entries = Gauge(names.EXPORTER_CACHE_ENTRIES, "Label texts remembered.", registry=self.registry)
        entries.set_function(lambda: cache.entries)
        size = Gauge(names.EXPORTER_CACHE_BYTES, "Bytes of label texts remembered.", registry=self.registry)
        size.set_function(lambda: cache.bytes)


def allowed_time(header: str | None, offset_s: float) -> float:
    """Seconds for a probe: what Prometheus allows less the offset, never under half of it.

    Without the header there is no bound but the module's. Raises TargetRefused on a header that is no
    positive number.
    """
    if header is None:
        return math.inf
    try:
        allowed = float(header)
    except ValueError:
        allowed = math.nan
    if not (allowed > 0 and math.isfinite(allowed)):
        raise TargetRefused(f"{TIMEOUT_HEADER}: {header!r} is not a positive number of seconds")
    return max(allowed - offset_s, allowed / 2)


def build_app(
    config: Config, timeout_offset_s: float = 0.5, resolve: Resolve = system_resolve
) -> web.Application:
    """The exporter as an application; it owns its client and closes it."""
    cache = LabelCache(config.aliases())
    own = OwnMetrics(cache)
    probers: list[Prober] = []

    async def life(_: web.Application) -> AsyncIterator[None]:
        executor = ThreadPoolExecutor(_RESOLVER_THREADS, thread_name_prefix="resolve")
        asyncio.get_running_loop().set_default_executor(executor)
        upstream = Upstream()
        probers.append(Prober(config, upstream, cache, resolve))
        yield
        probers.clear()
        await upstream.close()

    async def probe(request: web.Request) -> web.Response:
        try:
            timeout_s = allowed_time(request.headers.get(TIMEOUT_HEADER), timeout_offset_s)
            outcome = await probers[0].probe(
                request.query.get("target", ""), request.query.get("module", DEFAULT_MODULE), timeout_s
            )
        except TargetRefused as error:
            own.refused.inc()
            return web.Response(status=400, text=f"{error}\n")
        own.probes.labels(outcome.result).inc()
        own.translate.observe(outcome.translate_s)
        return exposition(outcome.body)

    async def index(_: web.Request) -> web.Response:
        return web.Response(text=_INDEX, content_type="text/html")

    app = web.Application()
    app.cleanup_ctx.append(life)
    app.add_routes([web.get("/", index), web.get("/probe", probe)])
    app.add_routes(own_routes(own.registry, lambda: bool(probers)))
    return app


def main(argv: list[str]) -> int:
    """Serve until stopped; returns 0, or 2 for flags or files that cannot be used."""
    parser = argparse.ArgumentParser("python -m exporters engine", description=__doc__)
    parser.add_argument("--config", type=Path, default=DEFAULT_PATH, help="YAML file (default: %(default)s)")
    parser.add_argument("--listen", default="127.0.0.1:9480", help="HOST:PORT (default: %(default)s)")
    parser.add_argument("--web-config", type=Path, help="TLS and basic auth, exporter toolkit format")
    parser.add_argument(
        "--timeout-offset",
        type=float,
        default=0.5,
        help="seconds kept back from the scrape's time (default: 0.5)",
    )
    parser.add_argument(
        "--check", action="store_true", help="read the files, say whether they are right, end"
    )
    parser.add_argument("--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    flags = parser.parse_args(argv)
    logging.basicConfig(level=flags.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if not 0 <= flags.timeout_offset < 60:
        parser.error(f"--timeout-offset {flags.timeout_offset}: write seconds from 0 to 60")
    try:
        config = load_config(flags.config)
        web_config = load_web_config(flags.web_config) if flags.web_config else None
        listen = parse_listen(flags.listen)
    except (ConfigError, ListenError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if flags.check:
        sys.stdout.write(
            f"{flags.config}: {len(config.allow)} allow entries, {len(config.modules)} modules: right\n"
        )
        return 0
    # start times as gauges double the series and look like values
    disable_created_metrics()  # type: ignore[no-untyped-call] # prometheus_client leaves it unannotated
    try:
        asyncio.run(serve(build_app(config, flags.timeout_offset), listen, web_config))
    except OSError as error:
        sys.stderr.write(f"--listen {flags.listen}: {error}; choose another port\n")
        return 2
    return 0
