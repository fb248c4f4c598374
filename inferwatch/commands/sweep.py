"""`inferwatch sweep FILE`: settings of a load and an engine -> measured points, their front, a page."""

from pathlib import Path
from typing import Any

import click
import yaml
from rich.console import Console
from rich.markdown import Markdown

from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter

BASE_PORT = 19560


@click.command("sweep")
@click.argument("sweep_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder for the runs."
)
@click.option(
    "--engine", type=click.Choice(["vllm-cpu"]), help="Restart the stack's own vLLM for engine.FLAG axes."
)
@click.option("--base-port", type=int, default=BASE_PORT, show_default=True, help="First port with --engine.")
@click.option("--spec", "spec_file", type=click.Path(path_type=Path), help="Spec file.  [default: slo.yaml]")
@click.option(
    "--redraw", is_flag=True, help="Measure nothing: draw the points in --out with the scores of now."
)
def command(
    sweep_file: Path, out: Path, engine: str | None, base_port: int, spec_file: Path | None, redraw: bool
) -> None:
    """
    Measure every setting of SWEEP_FILE (YAML), or search each for the highest rate that keeps the promise.

    Keys: plan (a load plan), seconds, axes (rate, users, any plan field, engine.FLAG), engine (command,
    ready_s), search (axis, low, high, tolerance), scores (name, better, values: your own quality figure for
    settings). Writes page.html, table.md and points.json into --out.
    """
    from pydantic import ValidationError

    from loadtests import page, sweep, sweeppage, sweepplan
    from slo import spec as slo_spec

    reporter = Reporter(Console(stderr=True))
    try:
        raw = yaml.safe_load(sweep_file.read_text(encoding="utf-8"))
        if engine is not None:
            _fill_in_engine(raw, base_port, reporter)
        chosen = sweepplan.SweepPlan.model_validate(raw)
    except (ValidationError, yaml.YAMLError) as error:
        raise StackError(f"{sweep_file}: {error}") from error
    if redraw:
        points = sweep.read_points(out)
    else:
        points = sweep.run_sweep(chosen, out, slo_spec.load(spec_file or slo_spec.DEFAULT_PATH), reporter.say)
    points = sweep.scored(points, chosen.scores)
    title = f"{chosen.plan.model}: {', '.join(chosen.axes) or 'one setting'}"
    table = sweeppage.markdown(points, title, chosen.scores)
    page.write(out / "table.md", table)
    page.write(out / "page.html", sweeppage.html(points, title, chosen.scores))
    Console().print(Markdown(table))
    if chosen.search is not None:
        for setting, answer in sweep.search_results(points, chosen.search.axis).items():
            click.echo(f"{setting}: {answer.text(chosen.search.axis)}")
    click.echo(f"page: {out / 'page.html'}")


def _fill_in_engine(raw: dict[str, Any], base_port: int, reporter: Reporter) -> None:
    """The engine of a sweep becomes the vLLM on one CPU core that `up` and `loop` use."""
    from inferwatch.commands.options import settings_of
    from inferwatch.stack import vllm_cpu

    settings = settings_of(None, base_port)
    service = vllm_cpu.service(vllm_cpu.ensure(settings, reporter), settings)
    raw["engine"] = {
        "command": list(service.argv),
        "env": dict(service.env),
        "cores": list(service.cores),
        "ready_s": service.ready_timeout_seconds,
        "ready_path": service.ready_path,
    }
    raw["plan"] |= {"base_url": service.url, "model": vllm_cpu.SERVED_MODEL}
