"""`inferwatch up [sim | vllm-cpu | URL…]`: the wish on the command line -> a running stack."""

import time
from pathlib import Path

import click
from rich.console import Console

from inferwatch.commands.options import settings_of, stack_folder
from inferwatch.stack import launcher, observe, processes, selection, state
from inferwatch.stack.errors import StackError
from inferwatch.stack.health import EngineHealth
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection, State

WATCH_SECONDS = 1.0


@click.command("up")
@click.argument("engines", nargs=-1, metavar="[sim | vllm-cpu | URL…]")
@click.option("--service", help="Label `service` of these engines, an id in slo.yaml.  [default: its first]")
@click.option("--base-port", type=int, help="First of the loopback ports of our own.  [default: 19000]")
@click.option("--rag", is_flag=True, help="The reference RAG service in front of the engine, too.")
@click.option("--foreground", is_flag=True, help="Stay until Ctrl-C or until a service ends, then end all.")
@stack_folder
def command(
    engines: tuple[str, ...],
    service: str | None,
    base_port: int | None,
    rag: bool,
    foreground: bool,
    run_dir: Path | None,
) -> None:
    """
    Start the stack and return when all of it is ready; a second `up` keeps what runs.

    sim is the simulated engine (default), vllm-cpu a real vLLM on one CPU core, and a URL such as
    http://127.0.0.1:8000 an engine of yours, which is only watched.
    """
    reporter, begun = Reporter(Console(stderr=True)), time.monotonic()
    settings = settings_of(run_dir, base_port)
    launcher.require_writable(settings.run_dir)
    wish = selection.choose(engines, service, settings, state.load(settings.state_file), rag=rag)
    now = launcher.up(settings, wish, reporter)
    seen = launcher.wait_seen(settings, now, reporter)
    click.echo(where_to_look(settings, now, seen, time.monotonic() - begun))
    if foreground:
        _stay(settings, now, reporter)


def where_to_look(settings: Settings, now: State, seen: tuple[EngineHealth, ...], took_seconds: float) -> str:
    """What a person opens next, as lines, and how long it took."""
    if now.selection is None:
        raise StackError("nothing was started")
    engines = [f"  engine         {engine.url}  {engine.state}" for engine in seen]
    return "\n".join(
        [
            f"ready after {took_seconds:.0f} s:",
            *engines,
            f"  dashboards     {settings.url('dashboards')}",
            f"  Prometheus     {settings.url('prometheus')}",
            f"  Alertmanager   {settings.url('alertmanager')}",
            f"  traces         {settings.url('jaeger')}/api/traces, spans to {settings.url('otlp-http')}",
            *([f"  RAG service    {settings.url('rag')}/v1/rag/answer"] if now.selection.rag else []),
            *(
                [f"  drift          {settings.url('exporter-drift')}/metrics"]
                if "exporter-drift" in now.records
                else []
            ),
            f"  notifications  {settings.notifications_file}",
            f"  logs           {settings.logs_dir}",
            *_observing(settings, now.selection),
            "next: `inferwatch status`, `inferwatch load`, `inferwatch down`",
        ]
    )


def _observing(settings: Settings, selection: Selection) -> list[str]:
    if not observe.is_observed(settings, selection):
        return []
    return [
        f"observing: the latency of service {selection.service} is judged and notifies nobody until you accept its",
        "  thresholds: `inferwatch slo suggest`, change slo.yaml, then `inferwatch slo accept`",
    ]


def _stay(settings: Settings, now: State, reporter: Reporter) -> None:
    reporter.say("in the foreground; Ctrl-C ends the stack")
    gone: list[str] = []
    try:
        while not gone:
            time.sleep(WATCH_SECONDS)
            gone = [name for name, record in now.records.items() if processes.find(record) is None]
    except KeyboardInterrupt:
        reporter.say("ending the stack")
    launcher.down(settings, reporter)
    if gone:
        logs = ", ".join(now.records[name].log for name in gone)
        raise StackError(f"{', '.join(gone)} ended by itself; the others were ended too; see {logs}")
