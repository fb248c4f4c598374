"""`inferwatch scenarios`: known faults on a real stack; which alerts came, how soon, and which must not."""

import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from rich.console import Console

from inferwatch.commands.options import settings_of
from inferwatch.scenarios.row import StageName
from inferwatch.stack.progress import Reporter

if TYPE_CHECKING:
    from inferwatch.scenarios.row import Row

# Apart from a running stack's ports and folder, so that `scenarios` and `up` do not meet.
BASE_PORT = 20200
FOLDER = "scenarios"


@click.command("scenarios")
@click.option("--only", multiple=True, metavar="NAME", help="Only this row; may be given several times.")
@click.option(
    "--stage",
    "stages",
    multiple=True,
    type=click.Choice(get_args(StageName)),
    help="Only the rows of this stage; may be given several times.",
)
@click.option("--ci", is_flag=True, help="The reduced set that CI runs, with ten healthy minutes beside it.")
@click.option("--list", "listed", is_flag=True, help="Name the rows and end.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
@click.option("--base-port", type=int, default=BASE_PORT, show_default=True, help="First loopback port.")
@click.option(
    "--dir", "run_dir", type=click.Path(path_type=Path), help="Folder of this run.  [.inferwatch/scenarios]"
)
def command(
    only: tuple[str, ...],
    stages: tuple[StageName, ...],
    ci: bool,
    listed: bool,
    as_json: bool,
    base_port: int,
    run_dir: Path | None,
) -> None:
    """
    Break simulated engines and the stack itself, on production intervals, and hold the alerts to theory.

    All rows run side by side where there are five CPUs, in 15 minutes, else in waves (two CPUs: 45 minutes; the stages
    fleet, watchers and sentinel alone: 15). Exit 0 only if every one is as expected.
    """
    from inferwatch.scenarios import main, report
    from inferwatch.scenarios.rows import ROWS

    rows = chosen(only, stages, ci)
    if listed:
        for row in rows:
            click.echo(f"{row.name:<24} {', '.join(one.alert for one in row.fires) or 'nothing may come'}")
        return
    settings = settings_of(run_dir or settings_of(None, None).run_dir / FOLDER, base_port)
    reporter = Reporter(Console(stderr=True))
    reporter.say(f"{len(rows)} of {len(ROWS)} rows; notifications and logs under {settings.run_dir}")
    # What was started is ended by TERM, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    found = main.run(settings, rows, reporter)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        report.show(found, Console())
    if not found["passed"]:
        raise SystemExit(1)


def chosen(only: tuple[str, ...], stages: tuple[StageName, ...], ci: bool) -> "tuple[Row, ...]":
    """Return the rows that all options mean together; click.UsageError for a name that there is not, or no row."""
    from inferwatch.scenarios.rows import ROWS

    if unknown := sorted(set(only) - {row.name for row in ROWS}):
        names = ", ".join(row.name for row in ROWS)
        raise click.UsageError(f"--only {unknown[0]}: no such row; there are: {names}")
    rows = tuple(
        row
        for row in ROWS
        if (not only or row.name in only) and (not stages or row.stage in stages) and (not ci or row.ci)
    )
    if not rows:
        given = [f"--only {name}" for name in only] + [f"--stage {name}" for name in stages] + ["--ci"] * ci
        raise click.UsageError(
            f"{' '.join(given)}: no row is all of that, so nothing would run; drop one of them"
        )
    return rows
