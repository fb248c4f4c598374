"""`inferwatch slo suggest|accept`: history -> objectives with their cost; and the word that makes them promises."""

from pathlib import Path

import click

from inferwatch.commands.options import settings_of, stack_folder
from inferwatch.promapi import Prometheus
from inferwatch.stack import launcher, observe, state
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import to_stderr
from slo import spec as slo_spec
from slo.duration import parse_seconds
from slo.objectives import Service
from slo.spec import Spec


@click.group("slo")
def command() -> None:
    """Suggest objectives from history, and accept them."""


@command.command("suggest")
@click.option("--prometheus", help="Base URL.  [default: the running stack's]")
@click.option("--service", help="An id in slo.yaml.  [default: its first]")
@click.option("--selector", help='Label matchers of the series.  [default: the service\'s; "" for all]')
@click.option(
    "--last", help="How far back, for example 7d.  [default: all there is, at most the budget's period]"
)
@stack_folder
def suggest(
    prometheus: str | None, service: str | None, selector: str | None, last: str | None, run_dir: Path | None
) -> None:
    """Read the history there is and propose objectives at bucket bounds, with what each would have cost."""
    from inferwatch.suggest.report import suggest as read

    settings = settings_of(run_dir)
    spec = slo_spec.load(settings.spec_path)
    chosen = _service(spec, service)
    # Another Prometheus does not know the labels that our targets carry.
    own = chosen.matchers() if prometheus is None else ""
    with Prometheus(prometheus or settings.url("prometheus"), timeout_seconds=60.0) as client:
        found = read(client, spec, chosen, own if selector is None else selector, _seconds(last))
    click.echo(found.shown())


@command.command("accept")
@click.option("--service", help="An id in slo.yaml.  [default: that of the attached engines]")
@stack_folder
def accept(service: str | None, run_dir: Path | None) -> None:
    """Make the latency thresholds of slo.yaml promises for attached engines: from now on they page."""
    settings = settings_of(run_dir)
    selection = state.load(settings.state_file).selection
    if service is None and (selection is None or selection.engine != "urls"):
        raise StackError(
            "nothing is observed: no engines are attached, and the latency of our own pages already; "
            "attach yours with `inferwatch up URL…`, or name the service to accept it beforehand"
        )
    spec = slo_spec.load(settings.spec_path)
    chosen = _service(spec, service or (selection.service if selection else None))
    observe.accept(settings, chosen.id)
    click.echo(f"{chosen.id}: accepted: {', '.join(_promises(chosen))}")
    if selection is not None and selection.service == chosen.id:
        launcher.up(settings, selection, to_stderr())


def _service(spec: Spec, wanted: str | None) -> Service:
    try:
        return spec.service(wanted or spec.services[0].id)
    except KeyError as error:
        raise StackError(str(error.args[0])) from None


def _promises(service: Service) -> list[str]:
    return [
        f"{slo.objective * 100:.10g} % {slo.id} within {slo.threshold_seconds:g} s"
        for slo in service.slos
        if slo.threshold_seconds is not None
    ]


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(parse_seconds(text))
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--last") from None
