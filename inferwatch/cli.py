"""`inferwatch NAME …` -> the subcommand of that name, imported only when it is used; errors without traceback."""

import errno
import importlib
import sys
from typing import Any, NamedTuple

import click


class Command(NamedTuple):
    """A subcommand: *module* holds a click command called ``command``."""

    name: str
    module: str
    help: str


COMMANDS = (
    Command("up", "inferwatch.commands.up", "Start the stack in the background; returns when it is ready."),
    Command("status", "inferwatch.commands.status", "Services, firing alerts and the last notifications."),
    Command("down", "inferwatch.commands.down", "End what `up` started, and nothing else."),
    Command("check", "inferwatch.commands.check", "Check spec, generated files, rules, configs, dashboards."),
    Command(
        "gen", "inferwatch.commands.gen", "Write rules, Alertmanager config and dashboards from slo.yaml."
    ),
    Command(
        "dashboards", "inferwatch.commands.dashboards", "Hold dashboards against types, data, a Grafana."
    ),
    Command("render", "inferwatch.commands.render", "Draw dashboards as HTML and PNG, without Grafana."),
    Command("load", "inferwatch.commands.load", "Load one engine as clients do, and say what they saw."),
    Command(
        "load-worker", "inferwatch.commands.load_worker", "This host's part of a load run on several hosts."
    ),
    Command("gate", "inferwatch.commands.gate", "Hold a load run against the gates of slo.yaml."),
    Command(
        "gate-demo", "inferwatch.commands.gate_demo", "Try the gate on simulated builds of known slowness."
    ),
    Command(
        "sweep", "inferwatch.commands.sweep", "Load over a grid of rates and engine flags; Pareto front."
    ),
    Command("compare", "inferwatch.commands.compare", "Load runs side by side, with confidence intervals."),
    Command("bench", "inferwatch.commands.bench", "Measure one claim beside a named peer in the same run."),
    Command(
        "drift", "inferwatch.commands.drift", "Fit a reference of healthy embeddings; the end-to-end run."
    ),
    Command("trace", "inferwatch.commands.trace", "One request's way through all parts: the end-to-end run."),
    Command("loop", "inferwatch.commands.loop", "Load, measure, judge and break a real vLLM; one JSON line."),
    Command(
        "scenarios",
        "inferwatch.commands.scenarios",
        "Known faults on a real stack: which alerts came, how soon, which not.",
    ),
    Command(
        "compose-check",
        "inferwatch.commands.compose_check",
        "Hold docker-compose.yml against what can be had.",
    ),
    Command("doctor", "inferwatch.commands.doctor", "Look at live engines for what the field gets wrong."),
    Command("slo", "inferwatch.commands.slo", "Suggest objectives from history, and accept them."),
    Command(
        "export", "inferwatch.commands.export", "Write Kubernetes manifests, or rules for your own stack."
    ),
    Command("replay", "inferwatch.commands.replay", "Recorded /metrics through the rules: what fired when."),
    Command(
        "tool", "inferwatch.commands.tool", "Print the path of a program of the stack, such as promtool."
    ),
)


class LazyGroup(click.Group):
    """A group that knows its commands' names without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [command.name for command in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for command in COMMANDS:
            if command.name == cmd_name:
                found: click.Command = importlib.import_module(command.module).command
                return found
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List names and one-line helps from the table above, importing nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(command.name, command.help) for command in COMMANDS])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; what the person can mend becomes one clean message and exit status 1."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if (said := _about_files(error)) is None:
                raise
            raise click.ClickException(said) from error
        except Exception as error:
            if isinstance(error, _mendable()):
                raise click.ClickException(str(error)) from error
            raise


def _about_files(error: OSError) -> str | None:
    """What a person can mend of a file that cannot be read or written: its path and why; None for all else."""
    if error.filename is not None:
        return f"{error.filename}: {error.strerror}; is the path right, and may this user use it?"
    if isinstance(error, PermissionError):
        return str(error)
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS}:
        return f"{error.strerror}; free some space, or write elsewhere"
    return None


def _mendable() -> tuple[type[Exception], ...]:
    from inferwatch.promapi.errors import PromError
    from inferwatch.stack.errors import StackError
    from slo.spec import SpecError

    found: list[type[Exception]] = [StackError, PromError, SpecError]
    # Only parts that were used can have raised theirs.
    for module, name in (
        ("loadtests.plan", "PlanError"),
        ("loadtests.run", "LoadError"),
        ("loadtests.records", "RecordError"),
        ("loadtests.quality", "QualityError"),
        ("loadtests.engineproc", "EngineError"),
        ("loadtests.annotate", "AnnotationError"),
    ):
        if module in sys.modules:
            found.append(getattr(sys.modules[module], name))
    return tuple(found)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="inferwatch")
def main() -> None:
    """SLO observability for LLM inference: measure, judge, show, try, warn."""
