"""`inferwatch compose-check`: every check of docker-compose.yml -> one line, and exit status 1 when one fails."""

import click

from inferwatch.commands.options import settings_of
from inferwatch.compose import check
from inferwatch.stack.progress import to_stderr


@click.command("compose-check")
def command() -> None:
    """Say what of docker-compose.yml is held against what, one line each, and what cannot be held here."""
    verdicts = check.run_all(settings_of(None), to_stderr())
    for verdict in verdicts:
        click.echo(f"{verdict.state:<8}  {verdict.what:<16}  {verdict.text}")
    if wrong := [verdict.what for verdict in verdicts if verdict.state == "FAIL"]:
        raise click.ClickException(f"{len(wrong)} checks fail: {', '.join(wrong)}")
