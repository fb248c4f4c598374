"""`python -m inferwatch.collector.firing`: alerts that fire -> the models they are of, in the file that the sampler reads.

The sampler reads its configuration again on SIGHUP; it is sent only when the list changed.
"""

import asyncio
import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import click
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from inferwatch.promapi import PromError, Prometheus, Sample
from inferwatch.stack.errors import StackError
from slo import spec as slo_spec
from slo.names import engine, labels, rag, traces

ALERTS = 'ALERTS{alertstate="firing",severity=~"page|ticket|warning"}'
OWNERS = (
    f"group by ({labels.SERVICE}, {labels.INSTANCE}, {labels.MODEL}) ({engine.REQUESTS_RUNNING})",
    f"group by ({rag.LABEL_SPAN_SERVICE}, {rag.LABEL_SPAN_MODEL})"
    f' ({rag.SPAN_CALLS}{{{rag.LABEL_SPAN_MODEL}!=""}})',
)
NO_MODELS = frozenset({"", labels.MODEL_UNKNOWN, labels.MODEL_SEVERAL})
QUIET_SECONDS = 30.0
"""Between two signals: each makes the sampler judge the traces that it holds."""


@dataclass(frozen=True)
class Owner:
    """A model and where it is served."""

    service: str
    instance: str
    model: str


def owners(samples: Iterable[Sample]) -> list[Owner]:
    """Who serves which model, from engines' series and from spans."""
    found = []
    for sample in samples:
        of = sample.labels
        model = of.get(labels.MODEL) or of.get(rag.LABEL_SPAN_MODEL, "")
        service = of.get(labels.SERVICE) or of.get(rag.LABEL_SPAN_SERVICE, "")
        if model not in NO_MODELS:
            found.append(Owner(service, of.get(labels.INSTANCE, ""), model))
    return found


def firing_models(alerts: Iterable[Sample], known: list[Owner]) -> list[str]:
    """
    Models that an alert is of: the one it names, else those of its instance, else those of its service.

    An alert that names none of the three is of the stack itself and of no model.
    """
    models: set[str] = set()
    for alert in alerts:
        of = alert.labels
        if of.get(labels.MODEL, "") not in NO_MODELS:
            models.add(of[labels.MODEL])
            continue
        at = {owner.model for owner in known if owner.instance and owner.instance == of.get(labels.INSTANCE)}
        of_service = {
            owner.model for owner in known if owner.service and owner.service == of.get(labels.SERVICE)
        }
        models |= at or of_service
    return sorted(models)


def ask(prometheus: str) -> list[str]:
    """The firing models now; PromError when Prometheus cannot say."""
    with Prometheus(prometheus, timeout_seconds=4.0) as client:
        alerts = client.query(ALERTS)
        known = owners(sample for query in OWNERS for sample in client.query(query)) if alerts else []
    return firing_models(alerts, known)


class Watch:
    """
    The list on disk, kept up with Prometheus.

    When Prometheus cannot be asked, the list stays as it was: who fired a minute ago is the best guess.
    """

    def __init__(self, file: Path, tell: Callable[[], None], registry: CollectorRegistry) -> None:
        self._file, self._tell = file, tell
        self._told = -QUIET_SECONDS
        self.models = _read(file)
        self._count = Gauge(traces.FIRING_MODELS, "Models whose traces are all kept.", registry=registry)
        self._reloads = Counter(
            traces.SAMPLER_RELOADS.removesuffix("_total"), "Signals sent to the sampler.", registry=registry
        )
        self._failures = Counter(
            traces.FIRING_FAILURES.removesuffix("_total"),
            "Looks at Prometheus, or signals to the sampler, that failed.",
            registry=registry,
        )
        self._count.set(len(self.models))

    def failed(self) -> None:
        """Count a look that gave no answer."""
        self._failures.inc()

    def see(self, models: list[str], now: float) -> bool:
        """Take the models of this moment; return whether the sampler was told of a change."""
        if models == self.models or now - self._told < QUIET_SECONDS:
            return False
        draft = self._file.with_name(self._file.name + ".tmp")
        draft.write_text(written(models), encoding="utf-8")
        draft.replace(self._file)
        try:
            self._tell()
        except (OSError, StackError) as error:
            # Not written down as known: the next look tells again.
            self._failures.inc()
            click.echo(f"the sampler cannot be told: {error}", err=True)
            return False
        self.models, self._told = models, now
        self._count.set(len(models))
        self._reloads.inc()
        return True


def written(models: list[str]) -> str:
    """
    The list as the collector reads it, which fills in ``${…}`` wherever it stands: a model is named by whoever sends
    a span, and such a name must neither read a file nor end the sampler.
    """
    return json.dumps([model.replace("$", "$$") for model in models]) + "\n"


def _read(file: Path) -> list[str]:
    """What was written before; none where there is no file, or one that is not ours, which is written anew."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []
    return [str(model).replace("$$", "$") for model in found] if isinstance(found, list) else []


def sampler_pid(state_file: Path | None, name: str) -> int:
    """The sampler's process: number 1 of a shared namespace, or the launcher's record of *name*."""
    if state_file is None:
        return 1
    from inferwatch.stack import processes, state

    record = state.load(state_file).records.get(name)
    found = processes.find(record) if record else None
    if found is None:
        raise ProcessLookupError(f"{state_file} names no running {name}")
    return found.pid


async def follow(watch: Watch, prometheus: str, every_seconds: float) -> None:
    """Look again and again; what fails is counted and tried again."""
    while True:
        try:
            models = await asyncio.to_thread(ask, prometheus)
        except PromError as error:
            watch.failed()
            click.echo(f"Prometheus cannot say what fires: {error}", err=True)
        else:
            if watch.see(models, time.monotonic()):
                click.echo(f"firing models: {', '.join(models) or 'none'}", err=True)
        await asyncio.sleep(every_seconds)


def application(
    registry: CollectorRegistry, watch: Watch, prometheus: str, every_seconds: float
) -> web.Application:
    """GET /metrics and /-/healthy; the watch runs while the server does."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), content_type="text/plain")

    async def healthy(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def following(_: web.Application) -> AsyncIterator[None]:
        task = asyncio.create_task(follow(watch, prometheus, every_seconds))
        yield
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/-/healthy", healthy)
    app.cleanup_ctx.append(following)
    return app


@click.command()
@click.option("--listen", default="127.0.0.1:9486", show_default=True, metavar="HOST:PORT")
@click.option("--prometheus", required=True, metavar="URL")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), required=True)
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The launcher's state.json.  [default: process 1]",
)
@click.option("--sampler", default="sampler", show_default=True, help="The sampler's name in it.")
def main(listen: str, prometheus: str, file: Path, state: Path | None, sampler: str) -> None:
    """Keep the list of firing models until a signal ends it."""
    host, _, port = listen.rpartition(":")
    registry = CollectorRegistry()
    watch = Watch(file, lambda: os.kill(sampler_pid(state, sampler), signal.SIGHUP), registry)
    every = slo_spec.load().intervals.evaluation_seconds
    web.run_app(
        application(registry, watch, prometheus, every),
        host=host,
        port=int(port),
        access_log=None,
        print=None,
    )


if __name__ == "__main__":
    main()
