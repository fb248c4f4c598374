"""`inferwatch trace e2e`: client, RAG service, vLLM, collector, Jaeger, Prometheus, Alertmanager; one JSON line."""

import json
import shutil

import click
from rich.console import Console

E2E_BASE_PORT = 19600
FOLDER = "trace-e2e"


@click.group("trace")
def command() -> None:
    """Traces: the end-to-end run."""


@command.command("e2e")
@click.option("--json", "as_json", is_flag=True, help="Only the JSON line; what happens is not told.")
@click.option("--base-port", type=int, default=E2E_BASE_PORT, show_default=True, help="First loopback port.")
def e2e_command(as_json: bool, base_port: int) -> None:
    """
    200 traced requests through a real stack, a slowed stage, a minute without Jaeger: about 6 minutes.

    Exit 0 only if every claim holds. Windows are compressed: 30 s stand for the 5 minutes of slo.yaml.
    """
    from inferwatch.commands.options import settings_of
    from inferwatch.stack.progress import Reporter
    from inferwatch.trace_e2e import main
    from inferwatch.trace_e2e.plan import Plan

    settings = settings_of(settings_of(None, None).run_dir / FOLDER, base_port)
    shutil.rmtree(settings.run_dir, ignore_errors=True)
    result = main.run(settings, Reporter(Console(stderr=True, quiet=as_json)), Plan())
    click.echo(json.dumps(result))
    if not result["passed"]:
        raise SystemExit(1)
