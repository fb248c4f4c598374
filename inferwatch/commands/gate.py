"""`inferwatch gate RUN`: a load run, and its baseline -> pass or fail by slo.yaml; exit 0 only when it passed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from loadtests.verdict import Verdict


class GateCrashedError(click.ClickException):
    """The gate itself broke: never a pass."""

    exit_code = 70


@click.command("gate")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--baseline", type=click.Path(path_type=Path), help="Run (or rounds) to compare throughput with."
)
@click.option("--spec", "spec_file", type=click.Path(path_type=Path), help="Spec file.  [default: slo.yaml]")
@click.option(
    "--markdown", "markdown_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a table."
)
@click.option("--json", "as_json", is_flag=True, help="The verdict as one JSON object.")
def command(
    run: Path, baseline: Path | None, spec_file: Path | None, markdown_file: Path | None, as_json: bool
) -> None:
    """
    Hold a load run (or a folder of rounds) against the gates of slo.yaml.

    \b
    Exit status: 0 passed · 10 a bound is broken · 11 no data · 12 too few samples · 13 the planned rate was
    not reached · 14 the load client was the bottleneck · 15 the baseline is of something else · 16 too noisy
    for the number of pairs · 17 throughput cannot be judged so · 70 the gate itself crashed
    """
    try:
        verdict = _judge(run, baseline, spec_file)
        _tell(verdict, markdown_file, as_json)
    except Exception as error:
        told = f"the gate crashed, which is not a pass: {type(error).__name__}: {error}"
        raise GateCrashedError(told) from error
    raise SystemExit(int(verdict.code))


def _judge(run: Path, baseline: Path | None, spec_file: Path | None) -> "Verdict":
    from loadtests.gates import judge
    from loadtests.rounds import read_rounds
    from loadtests.run import LoadError
    from loadtests.verdict import Check, GateExit, Verdict
    from slo import spec as slo_spec

    spec = slo_spec.load(spec_file or slo_spec.DEFAULT_PATH)
    try:
        runs = read_rounds(run)
        base = read_rounds(baseline) if baseline else None
    except LoadError as error:
        return Verdict((Check("data", GateExit.NO_DATA, None, None, str(error)),))
    return judge(runs, base, spec)


def _tell(verdict: "Verdict", markdown_file: Path | None, as_json: bool) -> None:
    from loadtests import page
    from loadtests.verdict import GateExit, verdict_json

    if markdown_file:
        page.write(markdown_file, page.verdict_markdown(verdict))
    if as_json:
        click.echo(json.dumps(verdict_json(verdict)))
        return
    table = Table("gate", "outcome", "what was measured")
    for check in verdict.checks:
        colour = "green" if check.outcome is GateExit.PASSED else "red"
        table.add_row(check.name, f"[{colour}]{check.outcome.name.lower()}[/]", check.detail)
    Console().print(table)
    click.echo(f"{verdict.code.name.lower().replace('_', ' ')} (exit {int(verdict.code)})")
