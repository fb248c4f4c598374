"""`inferwatch status`: what runs, which alerts fire, what was notified -> lines, or JSON."""

import json
import time
from pathlib import Path
from typing import Any

import click

from inferwatch.commands.options import settings_of, stack_folder
from inferwatch.stack import health, state
from inferwatch.stack.health import Status
from inferwatch.stack.receiver import RECEIVED_AT


@click.command("status")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for programs.")
@stack_folder
@click.pass_context
def command(context: click.Context, as_json: bool, run_dir: Path | None) -> None:
    """
    Show services, engines, firing alerts and the last notifications.

    Exit status: 0 when every service is ready, 1 otherwise, 3 when nothing was started.
    """
    settings = settings_of(run_dir)
    known = state.load(settings.state_file)
    found = health.read(settings, known)
    if as_json:
        click.echo(json.dumps(found.as_json()))
    else:
        click.echo("\n".join(lines(found)))
    context.exit(0 if found.is_complete else 1 if found.services else 3)


def lines(found: Status) -> list[str]:
    """The status for a person, one fact a line."""
    if not found.services:
        return ["nothing is running; start it with `inferwatch up`"]
    shown = ["services"]
    width = max(len(service.name) for service in found.services)
    urls = [service.url for service in found.services] + [engine.url for engine in found.engines]
    url_width = max(map(len, urls))
    for service in found.services:
        hint = "" if service.state == health.READY else f"  see {service.log}"
        where = f"{service.url:<{url_width}} pid {service.pid}{hint}"
        shown.append(f"  {service.name:<{width}} {service.state:<14} {where}")
    shown.append("engines")
    shown += [f"  {engine.url:<{url_width}} {engine.state}" for engine in found.engines]
    shown.append("alerts")
    if found.firing is None:
        shown.append("  Alertmanager cannot be asked")
    else:
        shown += [_alert_line(alert.labels, alert.state) for alert in found.firing] or ["  none fire"]
    shown.append("last notifications")
    shown += [_notification_line(entry) for entry in found.notifications] or ["  none yet"]
    shown.append(
        f"sign of life      {_clock(found.sign_of_life) if found.sign_of_life else 'not delivered yet'}"
    )
    return shown


def _alert_line(labels: Any, condition: str) -> str:
    rest = ", ".join(
        f"{name}={labels[name]}" for name in ("service", "model", "instance", "slo") if labels.get(name)
    )
    return f"  {labels.get('severity', '-'):<9} {labels.get('alertname', '?')} ({condition})  {rest}"


def _clock(unix_seconds: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix_seconds))


def _notification_line(entry: dict[str, Any]) -> str:
    at = _clock(entry[RECEIVED_AT])
    names = sorted({alert.get("labels", {}).get("alertname", "?") for alert in entry["alerts"]})
    return f"  {at}  {entry.get('status', '?'):<9} {entry.get('receiver', '?')}: {', '.join(names)}"
