"""`inferwatch gen [--check]`: slo.yaml -> all generated files, or the list of stale ones."""

import click

from inferwatch.stack import generated


@click.command("gen")
@click.option("--check", is_flag=True, help="Change nothing; exit with 1 when a file is stale.")
def command(check: bool) -> None:
    """Write rules, Alertmanager configuration and dashboards from slo.yaml."""
    stale = [path for name in generated.names() for path in generated.run(name, check=check)]
    for path in stale:
        click.echo(f"{'stale' if check else 'wrote'} {path}")
    if check and stale:
        raise click.ClickException(f"{len(stale)} generated files are stale; run `inferwatch gen` and commit")
    if not stale:
        click.echo("all generated files are up to date")
