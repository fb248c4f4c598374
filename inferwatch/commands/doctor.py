"""`inferwatch doctor URL…`: live engines -> findings with evidence, reason and mend; exit status 1 for faults."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from inferwatch.commands.options import settings_of
from inferwatch.doctor.examine import examine
from inferwatch.doctor.finding import Finding
from inferwatch.doctor.launch import Inputs
from inferwatch.stack import selection
from slo import spec as slo_spec

_FILE = click.Path(dir_okay=False, exists=True, path_type=Path)


@click.command("doctor")
@click.argument("urls", nargs=-1, required=True, metavar="URL…")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, max=600),
    default=5.0,
    show_default=True,
    help="How long each engine is watched under the load it has.",
)
@click.option("--manifest", type=_FILE, help="SHA256 of the model's files, as sha256sum writes it.")
@click.option(
    "--weights",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Folder of those files.  [default: the model the server was started with]",
)
@click.option("--golden", type=_FILE, help='A prompt and its tokens: {"prompt": "…", "tokens": [1, 2]}.')
@click.option("--trace-url", help="Where traces are looked up, with {trace_id} in it.")
@click.option("--bearer-token-file", type=_FILE, help="For engines behind --api-key.")
@click.option("--json", "as_json", is_flag=True, help="Findings as a JSON list.")
def command(
    urls: tuple[str, ...],
    seconds: float,
    bearer_token_file: Path | None,
    as_json: bool,
    **given: Any,
) -> None:
    """
    Look at live engines for what the field gets wrong, and run the five checks before a launch.

    Sends a few requests for one token and no load; what needs load is judged by what the engine went through.
    """
    settings = settings_of(None)
    token = bearer_token_file.read_text(encoding="utf-8").strip() if bearer_token_file else None
    inputs = Inputs(**given)
    spec = slo_spec.load(settings.spec_path)
    findings = examine(selection.base_urls(urls), spec, inputs, seconds, token)
    click.echo(json.dumps([asdict(f) for f in findings], indent=2) if as_json else shown(findings))
    if any(f.state == "fault" for f in findings):
        raise click.exceptions.Exit(1)


def shown(findings: list[Finding]) -> str:
    """Faults first and in full, then one line each for the rest."""
    lines: list[str] = []
    for finding in sorted(findings, key=lambda f: ("fault", "unknown", "ok").index(f.state)):
        lines.append(f"{finding.state:<8}{finding.check:<18}{finding.evidence}  [{finding.engine}]")
        if finding.state == "fault":
            lines += [f"{'':<8}why: {finding.why}", f"{'':<8}set: {finding.mend}"]
    faults = sum(f.state == "fault" for f in findings)
    return "\n".join([*lines, f"{faults} faults in {len(findings)} checks"])
