"""One session as the pages describe it: attach to an engine, look, suggest, accept, export, end."""

import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from inferwatch.promapi import Prometheus
from inferwatch.stack import processes
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import PORT_OFFSETS

from .pages import ROOT, commands

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
INFERWATCH = Path(sys.executable).with_name("inferwatch")
WITH_A_STACK = ("up", "status", "down", "slo")


def free_base_port() -> int:
    """A base port whose whole range of services is free now."""
    for base in range(27000, 31000, 200):
        held = False
        for offset in PORT_OFFSETS.values():
            with socket.socket() as probe:
                held = held or probe.connect_ex(("127.0.0.1", base + offset)) == 0
        if not held:
            return base
    raise AssertionError("no free range of ports")


@dataclass(frozen=True)
class Session:
    """A person's shell in an empty folder, with a stack of their own and an engine that somebody else runs."""

    folder: Path
    base: int
    engine: str

    def run(self, command: str, expected: int = 0) -> str:
        """Run a command of the pages on our engine and stack; its output."""
        here = command.replace("http://127.0.0.1:8000", self.engine)
        here = here.replace(
            "http://127.0.0.1:9090", f"http://127.0.0.1:{self.base + PORT_OFFSETS['prometheus']}"
        )
        words = shlex.split(here)[1:]
        if words[0] in WITH_A_STACK:
            words += ["--dir", str(self.folder / "stack")]
        if words[0] == "up":
            words += ["--base-port", str(self.base)]
        done = subprocess.run(
            [str(INFERWATCH), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
            env=os.environ,
        )
        print(f"$ {command}\n{done.stdout}{done.stderr}")
        assert done.returncode == expected, f"{command}: {done.stderr}"
        return done.stdout

    def prometheus(self) -> Prometheus:
        """The stack's Prometheus."""
        return Prometheus(f"http://127.0.0.1:{self.base + PORT_OFFSETS['prometheus']}")

    def latency_severities(self) -> set[str]:
        """Severities of the latency burn alerts that Prometheus has loaded."""
        with self.prometheus() as client:
            rules = [rule for group in client.rules() for rule in group.rules]
        return {rule.labels["severity"] for rule in rules if rule.name.startswith("LatencyBurn")}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """The simulated engine under light load, in its own process; whatever was started is ended."""
    folder, base = tmp_path_factory.mktemp("session"), free_base_port()
    words = (
        sys.executable,
        "-m",
        "sim",
        "--port",
        str(base),
        "--control-port",
        str(base + 1),
        "--self-load",
        "8",
    )
    engine = Service("engine", words, f"http://127.0.0.1:{base}", "/health")
    previous = Path.cwd()
    os.chdir(ROOT)
    record = processes.start(engine, folder / "logs")
    os.chdir(previous)
    made = Session(folder, base, engine.url)
    try:
        processes.wait_ready(engine, record, Reporter(Console(stderr=True)))
        yield made
        assert made.run("inferwatch down")
    finally:
        made.run("inferwatch down")
        processes.stop(record)


def written(page: str, start: str) -> list[str]:
    """Commands of a page that begin with *start*."""
    found = [command for command in commands(page) if command.startswith(start)]
    assert found, f"{page} has no {start!r} any more"
    return found


def test_attached_latency_is_observed_until_it_is_accepted(session: Session) -> None:
    """`up URL` says so and Prometheus' latency rules notify nobody; after `slo accept` they page."""
    (up,) = written("docs/deploy.md", "inferwatch up http")
    said = session.run(up)
    assert "observing: the latency of service llm" in said
    assert session.latency_severities() == {"none"}
    assert session.engine in session.run("inferwatch status")

    for suggest in written("docs/deploy.md", "inferwatch slo suggest"):
        assert "for slo.yaml:" in session.run(suggest)
    (accept,) = written("docs/deploy.md", "inferwatch slo accept")
    assert "99 % request-latency within 2 s" in session.run(accept)
    assert session.latency_severities() == {"page", "ticket"}


def test_the_doctor_looks_at_an_engine_without_flags(session: Session) -> None:
    """The page's first example; the simulated engine has coarse buckets, and its flags cannot be seen."""
    command = written("docs/deploy.md", "inferwatch doctor")[0]
    said = session.run(f"{command} --seconds 1", expected=1)

    assert re.search(r"^fault +bucket-floor", said, re.MULTILINE)
    assert re.search(r"^unknown +admission-limit", said, re.MULTILINE)


def test_every_metric_that_is_exported_is_on_the_page(session: Session) -> None:
    """Names and types that Prometheus read from the running exporters stand in docs/metrics.md."""
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \|", (ROOT / "docs" / "metrics.md").read_text(), re.MULTILINE)
    page = dict(rows)
    with session.prometheus() as client:
        metadata = client.json("GET", "/api/v1/metadata")["data"]
        recorded = {r.name for g in client.rules() for r in g.rules if r.kind == "recording"}
    seen = {
        name: entries[0]["type"]
        for name, entries in metadata.items()
        if name.startswith(("llm_", "inferwatch_"))
    }
    # OpenMetrics readers are told the counter's family without its suffix.
    wrong = {n: t for n, t in seen.items() if page.get(n, page.get(f"{n}_total")) != t}

    assert wrong == {}
    assert len(seen) > 30
    prefixed = tuple(name for name in page if name.endswith("_rate"))
    missing = {n for n in recorded if n not in page and not n.startswith((*prefixed, "llm_"))}
    assert missing == set()


@pytest.mark.parametrize("page", ["docs/deploy.md", "docs/upgrade.md"])
def test_what_needs_no_stack_runs_as_written(session: Session, page: str) -> None:
    """Exports into an empty folder, generated files are not stale."""
    for command in commands(page):
        if command.startswith(("inferwatch export", "inferwatch gen")):
            session.run(command)
    if page == "docs/deploy.md":
        assert (session.folder / "k8s" / "kustomization.yaml").is_file()
        staging = session.folder / "rules-staging" / "rules" / "service-llm-base.yaml"
        assert "interval: 15s" in staging.read_text()
