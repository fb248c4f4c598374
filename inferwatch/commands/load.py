"""`inferwatch load`: options or a plan file -> a load run on one engine, its records and its summary."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from inferwatch.commands.options import settings_of, stack_folder
from inferwatch.promapi.transport import Transport
from inferwatch.stack import state
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings

if TYPE_CHECKING:
    from loadtests.plan import Arrival, LoadPlan
    from loadtests.run import LoadProcess
    from slo.spec import Spec


@click.command("load")
@click.option("--url", help="Engine to load.  [default: the running stack's]")
@click.option("--model", help="Model to ask for.  [default: the engine's first]")
@click.option(
    "--users", type=click.FloatRange(min=1), help="Closed loop: so many clients, each with one request."
)
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), help="Open loop: requests per second.")
@click.option("--seconds", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True)
@click.option("--prompt-tokens", default="128", show_default=True, help="Number or distribution.")
@click.option("--output-tokens", default="64", show_default=True, help="Number or distribution.")
@click.option(
    "--plan", "plan_file", type=click.Path(dir_okay=False, path_type=Path), help="A whole plan (JSON)."
)
@click.option("--records", type=click.Path(file_okay=False, path_type=Path), help="Folder for the records.")
@click.option("--json", "as_json", is_flag=True, help="The summary as one JSON object.")
@stack_folder
def command(
    url: str | None,
    plan_file: Path | None,
    records: Path | None,
    as_json: bool,
    run_dir: Path | None,
    **wish: Any,
) -> None:
    """
    Load one engine as clients do and say what they saw; without options, the stages of slo.yaml.

    Failed requests are findings, not errors: the exit status is 0 when the run went as planned.
    """
    from loadtests import plan, report, run
    from slo import spec as slo_spec

    settings = settings_of(run_dir)
    spec = slo_spec.load(settings.spec_path)
    chosen = plan.read_plan(plan_file) if plan_file else _plan(url or _engine(settings), wish, spec)
    folder = records or settings.run_dir / "load" / time.strftime("%Y%m%d-%H%M%S")
    reporter = Reporter(Console(stderr=True))
    started = time.monotonic()

    def tick(_: "LoadProcess") -> bool:
        reporter.progress(f"loading {chosen.base_url} · {time.monotonic() - started:.0f} s")
        return True

    with reporter.task(f"loading {chosen.base_url}, model {chosen.model}"):
        result = run.run_load(chosen, folder, on_tick=tick)
    summary = report.summarise(result, spec.load.client)
    if as_json:
        click.echo(json.dumps(summary))
    else:
        Console().print(report.table(summary))
        click.echo(f"records: {folder}")


def _plan(url: str, wish: dict[str, Any], spec: "Spec") -> "LoadPlan":
    from loadtests.plan import parse_plan

    raw = {
        "base_url": url,
        "model": wish["model"] or _first_model(url),
        "arrival": _arrival(wish, spec).model_dump(),
        "prompt_tokens": wish["prompt_tokens"],
        "output_tokens": wish["output_tokens"],
    }
    return parse_plan(raw, "options")


def _arrival(wish: dict[str, Any], spec: "Spec") -> "Arrival":
    from loadtests import plan

    if wish["users"] and wish["rate"]:
        raise click.UsageError("--users is a closed loop, --rate an open one; give one of them")
    if wish["users"]:
        return plan.closed(wish["users"], wish["seconds"])
    if wish["rate"]:
        return plan.open_loop(wish["rate"], wish["seconds"])
    return plan.from_spec(spec.load)


def _engine(settings: Settings) -> str:
    selection = state.load(settings.state_file).selection
    if selection is None:
        raise StackError("no stack runs here; start it with `inferwatch up`, or name an engine with --url")
    return selection.urls[0]


def _first_model(url: str) -> str:
    with Transport(url) as client:
        answer = client.json("GET", "/v1/models")
    models = answer.get("data") if isinstance(answer, dict) else None
    if not models:
        raise StackError(f"{url}/v1/models lists no model; name one with --model")
    return str(models[0]["id"])
