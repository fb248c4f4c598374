"""`python -m alerts [--check]`: write the generated rules, or say which are stale."""

import click

from alerts.render import write


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 when a file is stale.")
def main(check: bool) -> None:
    """Generate alerts/rules, alerts/alertmanager/alertmanager.yml and docs/alerts.md from slo.yaml."""
    stale = write(check)
    for path in stale:
        click.echo(f"{path}: {'is stale; run `python -m alerts`' if check else 'written'}")
    if check and stale:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
