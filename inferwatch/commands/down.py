"""`inferwatch down`: the record of `up` -> those processes ended."""

from pathlib import Path

import click
from rich.console import Console

from inferwatch.commands.options import settings_of, stack_folder
from inferwatch.stack import launcher
from inferwatch.stack.progress import Reporter


@click.command("down")
@stack_folder
def command(run_dir: Path | None) -> None:
    """End what `up` started, and nothing else. Data and logs are kept."""
    settings = settings_of(run_dir)
    # Without a folder nothing was started, and none is made to say so.
    ended = launcher.down(settings, Reporter(Console(stderr=True))) if settings.run_dir.is_dir() else []
    click.echo(f"ended: {', '.join(ended)}" if ended else "nothing of ours was running")
