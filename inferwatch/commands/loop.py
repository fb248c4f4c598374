"""`inferwatch loop`: a real vLLM is loaded, measured, judged and broken; one JSON line says what held."""

import shutil
from pathlib import Path

import click
from rich.console import Console

from inferwatch.commands.options import settings_of
from inferwatch.stack.progress import Reporter

# Apart from a running stack's ports and folder, so that `loop` and `up` do not meet.
BASE_PORT = 19200
FOLDER = "loop"


@click.command("loop")
@click.option("--base-port", type=int, default=BASE_PORT, show_default=True, help="First loopback port.")
@click.option(
    "--dir", "run_dir", type=click.Path(path_type=Path), help="Folder of this loop.  [.inferwatch/loop]"
)
def command(base_port: int, run_dir: Path | None) -> None:
    """
    Run the whole loop on a real vLLM on one CPU core (about 15 minutes); exit 0 only if all of it holds.

    Its own data is written anew; an `inferwatch up` beside it is left alone.
    """
    from inferwatch.loop import main
    from inferwatch.stack import launcher

    reporter = Reporter(Console(stderr=True))
    settings = settings_of(run_dir or settings_of(None, None).run_dir / FOLDER, base_port)
    launcher.down(settings, reporter)
    shutil.rmtree(settings.data_dir, ignore_errors=True)
    result = main.run(settings, reporter)
    click.echo(main.line(result))
    for failure in result["failures"]:
        reporter.say(f"not so: {failure}")
    if not result["passed"]:
        raise SystemExit(1)
