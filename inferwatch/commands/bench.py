"""`inferwatch bench NAME`: a benchmark's name -> what it measured, side by side with a named peer."""

import importlib
import json

import click

# name -> module with `run() -> dict[str, object]`, imported only when chosen; `rules` takes a plan
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
@click.option("--direct", is_flag=True, help="rules: of engines that are scraped without our exporter.")
@click.option("--engines", type=click.IntRange(min=1), help="rules: of so many.  [default: 1000]")
def command(name: str, as_json: bool, direct: bool, engines: int | None) -> None:
    """
    Measure one claim on this machine; each result says what ran side by side in the same run.

    Exits with 1 where a result says that its goal is missed.
    """
    planned = {"direct": direct} | ({} if engines is None else {"instances": engines})
    if (direct or engines) and name != "rules":
        raise click.UsageError(f"--direct and --engines belong to `bench rules`, not to `bench {name}`")
    module = importlib.import_module(BENCHMARKS[name])
    result: dict[str, object] = module.run(module.Plan(**planned)) if name == "rules" else module.run()
    if as_json:
        click.echo(json.dumps(result))
    else:
        for key, value in result.items():
            click.echo(f"{key:<36} {value}")
    raise SystemExit(1 if result.get("under_goal") is False else 0)
