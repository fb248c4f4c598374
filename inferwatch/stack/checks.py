"""The checkout -> one verdict each on spec, generated files, rules, configurations and dashboards."""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inferwatch.stack import binaries, generated
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from slo import spec as slo_spec

MAX_OUTPUT_LINES = 12


@dataclass(frozen=True)
class Verdict:
    """One line of `inferwatch check`; *text* is a summary, or the fault and its mend."""

    name: str
    ok: bool
    text: str


class Fault(Exception):
    """The check does not hold; the text says what is wrong and what to do."""


Check = Callable[[Settings, Reporter], str]


def spec(settings: Settings, _: Reporter) -> str:
    """slo.yaml is valid."""
    found = slo_spec.load(settings.spec_path)
    slos = sum(len(service.slos) for service in found.services)
    return f"{len(found.services)} service(s), {slos} SLOs, {len(found.signals)} signals"


def generated_files(settings: Settings, _: Reporter) -> str:
    """What is committed is what the spec gives."""
    stale = [path for name in generated.names() for path in generated.run(name, check=True)]
    if stale:
        raise Fault(f"stale: {', '.join(stale)}; run `inferwatch gen` and commit")
    return f"{', '.join(generated.names())} match slo.yaml"


def _promtools(settings: Settings, reporter: Reporter) -> tuple[binaries.Binary, ...]:
    """The pinned promtool, and the distribution's old one: rules hold on both."""
    return (
        binaries.resolve("promtool", settings, reporter),
        binaries.from_distribution("promtool", settings, reporter),
    )


def rules(settings: Settings, reporter: Reporter) -> str:
    """Both promtools accept the rules."""
    files = sorted((settings.root / "alerts" / "rules").glob("*.yaml"))
    if not files:
        raise Fault("alerts/rules holds no rule files; run `inferwatch gen`")
    promtools = _promtools(settings, reporter)
    for promtool in promtools:
        _run([str(promtool.path), "check", "rules", "--lint-fatal", *map(str, files)])
    return f"{len(files)} files accepted by promtool {' and '.join(p.version for p in promtools)}"


def rule_tests(settings: Settings, reporter: Reporter) -> str:
    """The unit tests of the rules pass under both promtools."""
    files = sorted((settings.root / "tests" / "alerts").rglob("*.promtool.yaml"))
    if not files:
        raise Fault("tests/alerts holds no *.promtool.yaml; restore them from git")
    promtools = _promtools(settings, reporter)
    for promtool in promtools:
        _run([str(promtool.path), "test", "rules", *map(str, files)])
    return f"{len(files)} test files pass under promtool {' and '.join(p.version for p in promtools)}"


def alertmanager(settings: Settings, reporter: Reporter) -> str:
    """amtool accepts the configuration and its templates, and nothing in it would fail at the first alert."""
    from alerts.alertmanager import precheck

    file = settings.root / "alerts" / "alertmanager" / settings.alertmanager_config.name
    if faults := precheck.faults(file):
        raise Fault("\n    ".join(faults))
    amtool = binaries.resolve("amtool", settings, reporter)
    _run([str(amtool.path), "check-config", str(file)])
    return f"{file.relative_to(settings.root)} accepted by amtool {amtool.version}"


def dashboards(settings: Settings, _: Reporter) -> str:
    """Every dashboard builds, and Grafana's own published types accept it, where node is there to ask them."""
    from dashboards import registry, typecheck

    built = registry.build_all(slo_spec.load(settings.spec_path))
    panels = sum(len(board["panels"]) for board in built.values())
    made = f"{len(built)} dashboards, {panels} panels"
    if not (shutil.which("node") and shutil.which("npm")):
        return f"{made}; NOT held against Grafana's types (install node 20 for that)"
    try:
        faults = [fault for major in typecheck.MAJORS for fault in typecheck.check(built.values(), major)]
    except typecheck.TypecheckError as error:
        raise Fault(str(error)) from error
    if faults:
        raise Fault("Grafana's types refuse:\n    " + "\n    ".join(faults[:MAX_OUTPUT_LINES]))
    return f"{made}, accepted by the types of {', '.join(typecheck.MAJORS)}"


def collector(settings: Settings, reporter: Reporter) -> str:
    """Nothing in the collector's configuration is what failed other people, and the pinned collector accepts it."""
    from inferwatch.collector import lint
    from inferwatch.stack import traces

    file = settings.root / "otel-collector" / "config.yaml"
    text = file.read_text(encoding="utf-8")
    faults = lint.faults(text, traces.collector_env(settings), container=False)
    faults += lint.faults(text, {"INFERWATCH_OTLP_HOST": "0.0.0.0"}, container=True)
    if faults:
        raise Fault("\n    ".join(faults[:MAX_OUTPUT_LINES]))
    tool = binaries.resolve(traces.COLLECTOR, settings, reporter)
    _run([str(tool.path), "validate", "--config", str(file)])
    return f"{file.relative_to(settings.root)} accepted by the collector {tool.version}"


CHECKS: tuple[tuple[str, Check], ...] = (
    ("spec", spec),
    ("generated files", generated_files),
    ("rules", rules),
    ("rule tests", rule_tests),
    ("alertmanager", alertmanager),
    ("collector", collector),
    ("dashboards", dashboards),
)


def run_all(settings: Settings, reporter: Reporter) -> list[Verdict]:
    """All checks, each on its own: one that fails does not hide the next."""
    verdicts = []
    for name, check in CHECKS:
        try:
            verdicts.append(Verdict(name, True, check(settings, reporter)))
        except (Fault, StackError, slo_spec.SpecError, ImportError) as error:
            verdicts.append(Verdict(name, False, str(error)))
    return verdicts


def _run(argv: Sequence[str], cwd: Path | None = None) -> str:
    answer = subprocess.run(list(argv), capture_output=True, text=True, check=False, cwd=cwd)
    output = (answer.stdout + answer.stderr).strip()
    if answer.returncode != 0:
        tail = "\n    ".join(output.splitlines()[-MAX_OUTPUT_LINES:])
        raise Fault(f"{Path(argv[0]).name} {argv[1]} exits with {answer.returncode}:\n    {tail}")
    return output
