"""`inferwatch gate-demo`: simulated builds of known slowness -> how often the gate passes each; exit 1 if it errs."""

import json
import tempfile
from pathlib import Path

import click

LEAST = 0.95  # of the tries of each build must come out right: 19 of 20


@click.command("gate-demo")
@click.option(
    "--tries", type=click.IntRange(min=1), default=20, show_default=True, help="Tries of each build."
)
@click.option("--lanes", type=click.IntRange(min=1), default=2, show_default=True, help="Engines at a time.")
@click.option(
    "--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep the runs in this folder."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(tries: int, lanes: int, keep: Path | None, as_json: bool) -> None:
    """
    Try the gate on simulated builds: as good, 1 % slower, 10 % slower; and on runs that must fail.

    Needs a quiet machine: noise makes the gate ask for more pairs, and it says "inconclusive" rather than guess.
    """
    from loadtests import gatedemo
    from slo import spec as slo_spec

    spec = slo_spec.load()
    bound = next(gate.max_loss_ratio for gate in spec.gates if gate.max_loss_ratio is not None)

    def say(text: str) -> None:
        click.echo(text, err=True)

    with tempfile.TemporaryDirectory() as temporary:
        folder = keep or Path(temporary)
        result = gatedemo.run_tries(folder / "tries", spec, tries, lanes, say)
        broken = gatedemo.broken_runs(folder / "broken")
    curve = gatedemo.power_curve(result.log_ratios, spec, bound)
    right = {
        name: result.passes[name] if loss < bound else result.outcomes[name].count("failed")
        for name, loss in gatedemo.BUILDS.items()
    }
    holds = all(count >= LEAST * tries for count in right.values()) and broken == gatedemo.EXPECTED_BROKEN
    if as_json:
        shown = {"tries": tries, "right": right, "outcomes": result.outcomes, "power_percent": curve}
        click.echo(json.dumps({**shown, "exit_codes": broken, "holds": holds}))
    else:
        for name, count in right.items():
            click.echo(f"{name}: right in {count} of {tries}")
        if not curve:
            click.echo("no power curve: no pair of equal builds came to its end")
        for percent, share in curve.items():
            click.echo(f"{percent:>3} % slower: passes {share:6.1%} {'█' * round(share * 40)}")
        for name, code in broken.items():
            click.echo(f"{name}: exit {code}, expected {int(gatedemo.EXPECTED_BROKEN[name])}")
    if not holds:
        raise SystemExit(1)
