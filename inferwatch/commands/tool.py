"""`inferwatch tool NAME`: a tool's name -> the path of a working binary, made when nothing has it."""

import click

from inferwatch.commands.options import settings_of
from inferwatch.stack import binaries
from inferwatch.stack.progress import to_stderr


@click.command("tool")
@click.argument("names", nargs=-1, required=True, type=click.Choice(binaries.TOOLS), metavar="NAME…")
@click.option("--distribution", is_flag=True, help="The distribution's own, older build.")
def command(names: tuple[str, ...], distribution: bool) -> None:
    """
    Print the path of prometheus, promtool, alertmanager, amtool, jaeger or otelcol-inferwatch, one a line.

    Each is taken from PATH, else the cache, else the distribution's package, else built with Go.
    """
    settings = settings_of(None)
    find = binaries.from_distribution if distribution else binaries.resolve
    for name in names:
        click.echo(find(name, settings, to_stderr()).path)
