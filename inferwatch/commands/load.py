"""`inferwatch load`: options or a plan file -> a load run on one engine, its records and its summary."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from inferwatch.commands.load_options import load_options, plan_of
from inferwatch.commands.options import HostPort, settings_of, stack_folder
from inferwatch.stack import state
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings

if TYPE_CHECKING:
    from loadtests.plan import LoadPlan
    from loadtests.run import LoadProcess, LoadResult
    from loadtests.split import TimeSplit
    from slo.spec import Spec


@click.command("load")
@click.option("--url", help="Engine to load.  [default: the running stack's]")
@load_options
@click.option("--records", type=click.Path(file_okay=False, path_type=Path), help="Folder for the records.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve live series here; 0 picks a port.  [default: 0 for the running stack, which scrapes them]",
)
@click.option("--grafana", help="URL of a Grafana that gets an annotation of the run.")
@click.option("--grafana-token-file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--against", help="Baseline engine: run in pairs with it, for `gate --baseline`.")
@click.option("--pairs", type=click.IntRange(min=1), help="How many pairs.  [default: as the noise asks for]")
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="What the engine runs on, for the gate."
)
@click.option("--prometheus", help="Split the time by what this Prometheus knows of the engine.")
@click.option("--matchers", default="", help='Which engine series, such as service="llm".  [default: all]')
@click.option(
    "--workers", type=click.IntRange(1, 256), help="Wait for so many of `load-worker` instead of --processes."
)
@click.option(
    "--bind",
    type=HostPort(),
    default="127.0.0.1:5557",
    show_default=True,
    metavar="HOST:PORT",
    help="Where they join; whoever reaches it can join: a private network only.",
)
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
@stack_folder
def command(url: str | None, records: Path | None, as_json: bool, run_dir: Path | None, **wish: Any) -> None:
    """
    Load one engine as clients do and say what they saw; without options, the stages of slo.yaml.

    Failed requests are findings, not errors: the exit status is 0 when the run went as planned.
    """
    from loadtests import report
    from slo import spec as slo_spec

    settings = settings_of(run_dir)
    spec = slo_spec.load(settings.spec_path)
    chosen = plan_of(lambda: url or _engine(settings), wish, spec)
    if wish["workers"]:
        chosen = _spread(chosen, wish)
    folder = records or settings.run_dir / "load" / time.strftime("%Y%m%d-%H%M%S")
    labels = dict(_pair(label) for label in wish["labels"])
    reporter = Reporter(Console(stderr=True))
    if wish["against"]:
        _run_pairs(chosen, folder, wish, labels, spec, reporter)
        return
    wish["scraped"] = _scraped(settings) if url is None else None
    with reporter.task(f"loading {chosen.base_url}, model {chosen.model}"):
        result = _run(chosen, folder, wish, labels, reporter)
    summary = report.summarise(result, spec.load.client)
    split = _split(result, wish) if wish["prometheus"] else None
    if as_json:
        click.echo(json.dumps(summary | ({"mean_time_split": split.to_json()} if split else {})))
    else:
        Console().print(report.table(summary))
        for line in split.lines() if split else ():
            click.echo(line)
        click.echo(f"records: {folder}")
    if result.stopped:
        raise click.ClickException(
            f"the load client was ended before its plan was over; what it measured until then is in {folder}"
        )


def _spread(plan: "LoadPlan", wish: dict[str, Any]) -> "LoadPlan":
    """The plan for workers that come from elsewhere."""
    if wish["against"]:
        raise click.UsageError("--workers: pairs with --against are run from one host; leave one of them out")
    return plan.model_copy(update={"processes": wish["workers"]})


def _run(
    plan: "LoadPlan", folder: Path, wish: dict[str, Any], labels: dict[str, str], reporter: Reporter
) -> "LoadResult":
    from loadtests import identity, run

    identity.save(identity.collect(plan, labels), folder)
    started = time.monotonic()

    def tick(_: "LoadProcess") -> bool:
        reporter.progress(f"loading {plan.base_url} · {time.monotonic() - started:.0f} s")
        return True

    with _shown(plan, folder, wish, reporter) as ended:
        listen = wish["bind"] if wish["workers"] else None
        result = run.run_load(plan, folder, on_tick=tick, listen=listen)
        ended(result)
    return result


@contextlib.contextmanager
def _shown(
    plan: "LoadPlan", folder: Path, wish: dict[str, Any], reporter: Reporter
) -> Iterator[Callable[["LoadResult"], None]]:
    """Live series and the annotation, where they were asked for; the yielded function is told of the end."""
    from loadtests.annotate import Annotation
    from loadtests.liveserver import live_series

    began_s, text = time.time(), f"load run {folder.name}: {plan.model}, {plan.arrival.kind} loop"
    with contextlib.ExitStack() as stack:
        if wish["metrics_port"] is not None or wish["scraped"]:
            port = stack.enter_context(live_series(plan, folder, began_s, wish["metrics_port"] or 0))
            if wish["scraped"]:
                file, service = wish["scraped"]
                stack.enter_context(_announced(file, service, port))
            reporter.say(f"live series: http://127.0.0.1:{port}/metrics")
        annotation = (
            Annotation(wish["grafana"], wish["grafana_token_file"], text, began_s)
            if wish["grafana"]
            else None
        )

        def ended(result: "LoadResult") -> None:
            if annotation is not None:
                annotation.end(result.ended_s, f"{text}, {len(result.records)} requests")

        yield ended


def _scraped(settings: Settings) -> tuple[Path, str] | None:
    """The file from which the running stack's Prometheus learns of load runs, and the service they load."""
    selection = state.load(settings.state_file).selection
    return (settings.loads_file, selection.service) if selection else None


@contextlib.contextmanager
def _announced(file: Path, service: str, port: int) -> Iterator[None]:
    """Prometheus scrapes the run as long as the block lasts."""
    from inferwatch.stack import config

    config.write_json(file, config.load_targets(service, port))
    try:
        yield
    finally:
        config.write_json(file, [])


def _split(result: "LoadResult", wish: dict[str, Any]) -> "TimeSplit":
    """Asked a scrape after the end, so that the engine's last counts are there."""
    from inferwatch.promapi.prometheus import Prometheus
    from loadtests.split import SETTLE_S, split

    time.sleep(max(0.0, result.ended_s + SETTLE_S - time.time()))
    with Prometheus(wish["prometheus"]) as prometheus:
        return split(result, prometheus, wish["matchers"])


def _run_pairs(
    plan: "LoadPlan", folder: Path, wish: dict[str, Any], labels: dict[str, str], spec: "Spec",
    reporter: Reporter,
) -> None:  # fmt: skip
    """Candidate and baseline in turn; without --pairs the first ones say how many are needed."""
    from loadtests.gates import pairs_wanted
    from loadtests.rounds import read_rounds, run_rounds

    candidate, baseline = folder / "candidate", folder / "baseline"
    folders = {candidate: plan.base_url, baseline: wish["against"]}
    first = wish["pairs"] or spec.gate_test.min_pairs

    def told(one: Path, number: int) -> None:
        reporter.say(f"round {number + 1}: {one.name}")

    run_rounds(plan, folders, first, labels=labels, told=told)
    if wish["pairs"] is None:
        wanted = pairs_wanted(read_rounds(candidate), read_rounds(baseline), spec)
        if wanted > first:
            reporter.say(f"the noise asks for {wanted} pairs")
            run_rounds(plan, folders, wanted - first, first=first, labels=labels, told=told)
    click.echo(f"inferwatch gate {candidate} --baseline {baseline}")


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"--label {text!r}: write it as KEY=VALUE")
    return key, value


def _engine(settings: Settings) -> str:
    selection = state.load(settings.state_file).selection
    if selection is None:
        raise StackError("no stack runs here; start it with `inferwatch up`, or name an engine with --url")
    return selection.urls[0]
