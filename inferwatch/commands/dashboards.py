"""`inferwatch dashboards check | verify`: dashboards held against Grafana's types, a Prometheus, a Grafana."""

from pathlib import Path

import click

from inferwatch.commands.options import settings_of, stack_folder


@click.group("dashboards")
def command() -> None:
    """Hold the dashboards against Grafana's types, a running Prometheus, or a running Grafana."""


@command.command("check")
@click.option("--prometheus", "url", help="Base URL.  [default: that of the running stack, if it runs]")
@click.option("--range", "span", default="1h", show_default=True, help="How far back queries look.")
@click.option("--strict", is_flag=True, help="A query without data is a fault.")
@stack_folder
def check(url: str | None, span: str, strict: bool, run_dir: Path | None) -> None:
    """Types, house rules, and every query run: prints counts, exits with 1 on a fault."""
    from dashboards.check import main
    from inferwatch.promapi import Prometheus

    if url is None:
        own = settings_of(run_dir).url("prometheus")
        with Prometheus(own, timeout_seconds=3.0) as prometheus:
            url = own if prometheus.is_ready() else None
    words = [*(["--prometheus", url] if url else []), "--range", span, *(["--strict"] if strict else [])]
    raise SystemExit(main(words))


@command.command("verify")
def verify() -> None:
    """
    Load every dashboard into the Grafana at GRAFANA_URL, read it back, run its queries.

    GRAFANA_TOKEN, or GRAFANA_USER and GRAFANA_PASSWORD, say who asks. Dashboards there are overwritten.
    """
    from dashboards.grafana import GrafanaError, from_environment
    from dashboards.grafana import verify as verify_in
    from dashboards.registry import build_all
    from slo.spec import load

    boards = build_all(load())
    try:
        faults = verify_in(boards, from_environment())
    except GrafanaError as error:
        raise click.ClickException(str(error)) from error
    for fault in faults:
        click.echo(f"fault: {fault}")
    if faults:
        raise click.ClickException(f"Grafana found {len(faults)} faults")
    click.echo(f"{len(boards)} dashboards loaded, read back and queried without a fault")
