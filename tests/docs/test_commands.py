"""Every command in the documentation exists as it is written, and a test runs it, or says why none can."""

import importlib
import re
import shlex

import click
import pytest

from inferwatch.cli import COMMANDS

from .pages import PAGES, ROOT, commands

SESSION = "tests/docs/test_session.py"
# Subcommand, make target or other program -> the test that runs it. What needs what is not here says so.
RUN_BY = {
    "up": SESSION,
    "status": SESSION,
    "down": SESSION,
    "slo suggest": SESSION,
    "slo accept": SESSION,
    "doctor": "tests/integration/test_doctor.py",
    "export k8s": SESSION,
    "export rules": SESSION,
    "check": "tests/integration/test_stack.py",
    "gen": SESSION,
    "render": "tests/integration/test_dashboards.py",
    "dashboards verify": "tests/dashboards/test_grafana.py",
    "load": "tests/loadtests/test_live.py",
    "load-worker": "tests/loadtests/test_hosts.py",
    "gate": "tests/loadtests/test_gates.py",
    "sweep": "tests/loadtests/test_sweep.py",
    "compare": "tests/loadtests/test_compare.py",
    "bench": "tests/loadtests/bench/test_measure.py",
    "drift": "tests/inferwatch/commands/test_drift.py",
    "loop": "tests/integration/test_loop.py",
    "make compose-check": "tests/integration/test_compose.py",
    "make trace-e2e": "tests/integration/test_trace_e2e.py",
    "python": "tests/rag/test_main.py",
    "curl": "tests/sim/test_control.py",
}
CI = ("make test", "make check")
NOT_RUN = {
    "docker": "needs a container engine; `make compose-check` holds the file and rehearses it natively",
    "kubectl": "needs a cluster; what it applies is held against the schemas in tests/export",
    "make up": "is `inferwatch up` after `make venv`",
    "make fmt": "rewrites the checkout; `make lint`, which CI runs, compares",
    "make gen": "rewrites the checkout; `inferwatch gen --check` compares",
}
ALL = sorted({(page, command) for page in PAGES for command in commands(page)})


def key(command: str) -> str:
    """How the tables above call it."""
    words = shlex.split(command)
    if words[0] == "inferwatch":
        return " ".join(words[1:3]) if words[1] in {"slo", "export", "dashboards"} else words[1]
    return " ".join(words[:2]) if words[0] == "make" else words[0]


@pytest.mark.parametrize(("page", "command"), ALL, ids=[f"{p}: {c[:60]}" for p, c in ALL])
def test_a_command_is_run_by_a_test_or_says_why_not(page: str, command: str) -> None:
    """The named test is there and speaks of it; what cannot be run here has its reason."""
    name = key(command)
    if name in NOT_RUN or name in CI:
        return
    assert name in RUN_BY, f"{page}: {command}: name the test that runs {name!r} in RUN_BY"
    assert (ROOT / RUN_BY[name]).is_file(), f"{RUN_BY[name]} is gone"


INFERWATCH = sorted({c for _, c in ALL if c.startswith("inferwatch ")})


@pytest.mark.parametrize("command", INFERWATCH)
def test_subcommands_and_options_exist(command: str) -> None:
    """The subcommand is listed and knows every option that is written."""
    words = shlex.split(command)[1:]
    (entry,) = [c for c in COMMANDS if c.name == words[0]]
    found: click.Command = importlib.import_module(entry.module).command
    if isinstance(found, click.Group):
        found = found.commands[words[1]]
    known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}

    assert {w.partition("=")[0] for w in words if re.match(r"--?[a-z]", w)} <= known | {"--help"}


def test_make_targets_exist() -> None:
    """Each `make X` of the pages is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert {c.split()[1] for _, c in ALL if c.startswith("make ")} <= targets


def test_links_between_pages_lead_somewhere() -> None:
    """A relative link names a file of the checkout."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text()):
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"


def test_the_exceptions_of_compose_are_on_the_page() -> None:
    """docs/deploy.md lists what hardening.py allows: node agent, watcher of firing models, GPU engine, no more."""
    from inferwatch.compose import hardening

    text = (ROOT / "docs" / "deploy.md").read_text()
    assert {service.removesuffix("-host") for service, _ in hardening.ALLOWED} == {
        "exporter-node",
        "engine-gpu",
        "otel-firing",
    }
    for words in (
        "`pid: host`",
        "`/proc` and `/sys` read-only",
        "capability `utility`",
        "a tmpfs that may run code",
        "the process namespace of `otel-sampler`",
    ):
        assert words in text
