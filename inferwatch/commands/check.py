"""`inferwatch check`: every check -> one line, and exit status 1 when one does not hold."""

import click

from inferwatch.commands.options import settings_of
from inferwatch.stack import checks
from inferwatch.stack.progress import to_stderr


@click.command("check")
def command() -> None:
    """Check spec, generated files, rules, Alertmanager configuration and dashboards: one line each."""
    verdicts = checks.run_all(settings_of(None), to_stderr())
    for verdict in verdicts:
        click.echo(f"{'ok  ' if verdict.ok else 'FAIL'}  {verdict.name:<16} {verdict.text}")
    if wrong := [verdict.name for verdict in verdicts if not verdict.ok]:
        raise click.ClickException(f"{len(wrong)} of {len(verdicts)} checks fail: {', '.join(wrong)}")
