"""`inferwatch replay DIR`: recorded /metrics pages through exporter, Prometheus and rules; which alerts fired when."""

import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from inferwatch.commands.options import settings_of
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings

BASE_PORT = 21200
FOLDER = "replay"


@click.command("replay")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--healthy-day", is_flag=True, help="A day of healthy traffic in place of a folder; minutes.")
@click.option(
    "--history-rate",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Requests/s of a healthy past that is written first; 0: a fresh install.",
)
@click.option(
    "--hours",
    type=click.FloatRange(min=0.1, max=168),
    default=24.0,
    show_default=True,
    help="Length of the healthy day.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object in place of the table.")
@click.option("--base-port", type=int, default=BASE_PORT, show_default=True, help="First loopback port.")
@click.option(
    "--dir", "run_dir", type=click.Path(path_type=Path), help="Folder of this run.  [.inferwatch/replay]"
)
def command(
    folder: Path | None,
    healthy_day: bool,
    hours: float,
    history_rate: float,
    as_json: bool,
    base_port: int,
    run_dir: Path | None,
) -> None:
    """
    Play every recording in FOLDER at its own times and say which alerts fired.

    FOLDER holds pages as a scrape saw them: NAME_scrapes.json with NAME_000.txt …, files named
    NUMBER_<unix ms>.prom, or a recordings.json; .gz is read too.
    """
    if (folder is None) != healthy_day:
        raise click.UsageError("give a folder of recordings, or --healthy-day")
    settings = settings_of(run_dir or settings_of(None, None).run_dir / FOLDER, base_port)
    reporter = Reporter(Console(stderr=True))
    # What was started is ended by TERM, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if folder is None:
        _day(settings, hours, reporter, as_json)
        return
    from inferwatch.replay import run

    found = run.run(settings, folder, history_rate, reporter)
    if as_json:
        click.echo(json.dumps(found, indent=2))
    else:
        Console().print(table(found))


def table(found: Mapping[str, Any]) -> Table:
    """What fired, for people."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("recording", "alert", "severity", "fired from s", "to s", "delivered at s"):
        shown.add_column(title, justify="right" if title.endswith(" s") else "left")
    for recording in found["recordings"]:
        for one in recording["alerts"]:
            came = one["delivered_seconds"]
            name = " ".join([one["alert"], *(v for k, v in one["labels"].items() if k == "sloth_slo")])
            shown.add_row(
                recording["name"],
                name,
                one["severity"],
                f"{one['after_seconds']:.0f}",
                f"{one['until_seconds']:.0f}",
                "silenced" if came is None else f"{came:.0f}",
            )
        if not recording["alerts"]:
            shown.add_row(recording["name"], "nothing", "", "", "", "")
    return shown


def _day(settings: Settings, hours: float, reporter: Reporter, as_json: bool) -> None:
    from inferwatch.replay import day

    found = day.run(settings, hours, reporter)
    if as_json:
        click.echo(json.dumps(asdict(found) | {"passed": found.passed}, indent=2))
    else:
        click.echo(f"{found.hours:g} healthy hours, {found.series} series")
        for alert, severity in found.fired:
            click.echo(f"  {severity}: {alert} fired, and nothing was wrong")
        click.echo(
            found.trouble or ("nobody was paged" if found.passed else "somebody was woken for nothing")
        )
    if not found.passed:
        raise SystemExit(1)
