"""`inferwatch bench NAME`: a benchmark's name -> what it measured, side by side with a named peer."""

import importlib
import json

import click

# name -> module with `run() -> dict[str, object]`, imported only when chosen
BENCHMARKS = {
    "collector": "inferwatch.bench.collector",
    "drift": "inferwatch.bench.drift",
    "engine": "inferwatch.bench.engine",
    "load": "inferwatch.bench.load",
    "node": "inferwatch.bench.node",
    "rules": "inferwatch.bench.rules",
    "tracing": "inferwatch.bench.tracing",
}


@click.command("bench")
@click.argument("name", type=click.Choice(tuple(BENCHMARKS)))
@click.option("--json", "as_json", is_flag=True, help="One JSON object for programs.")
def command(name: str, as_json: bool) -> None:
    """Measure one claim on this machine; each result says what ran side by side in the same run."""
    result: dict[str, object] = importlib.import_module(BENCHMARKS[name]).run()
    if as_json:
        click.echo(json.dumps(result))
        return
    for key, value in result.items():
        click.echo(f"{key:<36} {value}")
