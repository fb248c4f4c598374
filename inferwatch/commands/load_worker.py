"""`inferwatch load-worker HOST:PORT`: this host's part of a load run whose master is another host."""

import time
from pathlib import Path

import click

from inferwatch.commands.options import HostPort, settings_of, stack_folder


@click.command("load-worker")
@click.argument("master", type=HostPort())
@click.option("--records", type=click.Path(file_okay=False, path_type=Path), help="Folder for the records.")
@click.option(
    "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="So many workers."
)
@stack_folder
def command(master: tuple[str, int], records: Path | None, processes: int, run_dir: Path | None) -> None:
    """
    Be workers of `inferwatch load --workers N --bind HOST:PORT` on another host, which has the plan.

    Files that the plan names (tokens, traces, prompts) are read on this host. Records are kept here and sent to the
    master at the end. Locust's port is neither encrypted nor guarded: only within a private network.
    """
    from loadtests.join import JoinedWorkers

    folder = records or settings_of(run_dir).run_dir / "load-worker" / time.strftime("%Y%m%d-%H%M%S")
    workers = JoinedWorkers(master, folder, processes)
    try:
        as_planned = workers.wait()
    finally:
        workers.stop()
    if not as_planned:
        raise click.ClickException(f"the run was ended before its plan was over; records are in {folder}")
    click.echo(f"records, which the master has too: {folder}")
