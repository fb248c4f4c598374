"""The whole stack on the simulated engine, as `inferwatch up sim` starts it: real Prometheus and Alertmanager."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from alerts.lint import metric_names
from alerts.registry import stack_groups
from inferwatch.promapi import Prometheus, Rule
from inferwatch.stack import binaries, receiver
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import PORT_OFFSETS, Settings, default_settings
from slo import spec as slo_spec

ROOT = Path(__file__).resolve().parents[2]
INFERWATCH = Path(sys.executable).with_name("inferwatch")
SERVICES = [
    "jaeger",
    "collector",
    "engine",
    "receiver",
    "exporter-engine",
    "exporter-canary",
    "exporter-node",
    "alertmanager",
    "prometheus",
    "exporter-analysis",
    "dashboards",
]
pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def free_base_port() -> int:
    """A base port whose whole range of services is free now."""
    for base in range(24000, 40000, 200):
        held = False
        for offset in PORT_OFFSETS.values():
            with socket.socket() as probe:
                held = held or probe.connect_ex(("127.0.0.1", base + offset)) == 0
        if not held:
            return base
    raise AssertionError("no free range of ports")


@dataclass(frozen=True)
class Stack:
    """A running stack of the test's own."""

    settings: Settings

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a subcommand on this stack."""
        return subprocess.run(
            [str(INFERWATCH), *words, "--dir", str(self.settings.run_dir)],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.settings.run_dir.parent,
        )

    def status(self) -> dict[str, Any]:
        """What `status --json` says."""
        found: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One stack for all tests of this file, in a folder and on ports of its own."""
    base = free_base_port()
    running = Stack(default_settings(run_dir=tmp_path_factory.mktemp("stack") / "run", base_port=base))
    answer = running.run("up", "sim", "--base-port", str(base))
    try:
        assert answer.returncode == 0, answer.stderr
        yield running
    finally:
        running.run("down")


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Return when *condition* holds; fail after *seconds*."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.5)


def test_everything_is_ready_and_the_engine_is_seen(stack: Stack) -> None:
    """After `up` each service answers and Prometheus has probed the engine."""
    found = stack.status()

    assert [(s["name"], s["state"]) for s in found["services"]] == [(name, "ready") for name in SERVICES]
    assert found["engines"] == [{"url": stack.settings.url("engine"), "state": "up"}]


def test_every_rule_is_healthy_in_a_real_prometheus(stack: Stack) -> None:
    """No rule of ours fails: quick groups by Prometheus' own word, slow ones by asking their expression now."""
    with Prometheus(stack.settings.url("prometheus")) as client:
        wait_for(lambda: all(r.health != "unknown" for r in rules_of(client, quick=True)), 90)
        rules = rules_of(client, quick=True)
        for rule in rules_of(client, quick=False):
            client.query(rule.query)

    assert len(rules) > 50
    assert {(rule.name, rule.last_error) for rule in rules if rule.health != "ok"} == set()


def test_what_rules_read_of_the_watchers_is_scraped(stack: Stack) -> None:
    """Every metric of Prometheus and Alertmanager themselves, under the names of their pinned versions."""
    groups = stack_groups(slo_spec.load())
    read = {name for group in groups for rule in group.rules for name in metric_names(rule.expr)}
    own = {name for name in read if name.startswith(("prometheus_", "alertmanager_"))}
    with Prometheus(stack.settings.url("prometheus")) as client:
        deadline = time.monotonic() + 60
        while len(missing := {name for name in own if not client.query(f"count({name})")}) > 1:
            assert time.monotonic() < deadline, missing
            time.sleep(1)

    assert len(own) > 10
    assert missing == {"alertmanager_cluster_members"}  # this stack's one is in no cluster


def rules_of(client: Prometheus, *, quick: bool) -> list[Rule]:
    """Rules of the groups that are judged at least every 30 s, or of the others."""
    groups = [group for group in client.rules() if (group.interval_seconds <= 30) is quick]
    return [rule for group in groups for rule in group.rules]


def test_every_target_is_scraped(stack: Stack) -> None:
    """Engine, exporters, Prometheus and Alertmanager are all up in Prometheus' own words."""
    with Prometheus(stack.settings.url("prometheus")) as client:
        wait_for(lambda: all(target.health != "unknown" for target in client.targets()), 30)
        found = {target.job: (target.health, target.last_error) for target in client.targets()}

    exporters = {"llm-engine", "llm-canary", "engine-exporter", "llm-analysis"}
    assert exporters | {"prometheus", "alertmanager"} <= set(found)
    assert set(found.values()) == {("up", "")}


def test_the_sign_of_life_is_delivered(stack: Stack) -> None:
    """The watchdog goes the whole way: rule, Alertmanager, webhook."""
    wait_for(lambda: stack.status()["sign_of_life"] is not None, 90)

    first = receiver.read(stack.settings.notifications_file)[0]
    assert first["receiver"] == "watchdog"


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    """The same services with the same process numbers, from any folder and without naming port or engine; it says how long it took."""
    before = {s["name"]: s["pid"] for s in stack.status()["services"]}
    answer = stack.run("up")

    assert answer.returncode == 0, answer.stderr
    assert re.match(r"ready after \d+ s:\n", answer.stdout)
    assert {s["name"]: s["pid"] for s in stack.status()["services"]} == before


def test_the_dashboards_are_served(stack: Stack) -> None:
    """The page that `up` points at shows a dashboard."""
    import urllib3

    with urllib3.PoolManager() as pool:
        answer = pool.request("GET", stack.settings.url("dashboards") + "/")

    assert answer.status == 200
    assert b"SLO" in answer.data


def test_load_without_options_finds_the_running_engine(stack: Stack) -> None:
    """`load` needs neither URL nor model while a stack runs; its summary is one JSON object."""
    answer = stack.run("load", "--users", "2", "--seconds", "3", "--output-tokens", "8", "--json")

    assert answer.returncode == 0, answer.stderr
    summary = json.loads(answer.stdout)
    assert summary["base_url"] == stack.settings.url("engine")
    assert summary["requests"]["ok"] > 0
    assert summary["requests"]["error"] == 0


@pytest.mark.parametrize("old", [False, True], ids=["pinned", "distribution"])
def test_the_real_tools_accept_what_is_rendered(stack: Stack, old: bool) -> None:
    """promtool and amtool, the pinned ones and the distribution's old ones, accept the running configuration."""
    find = binaries.from_distribution if old else binaries.resolve
    reporter = Reporter(Console(stderr=True))
    checks = (
        ("promtool", ["check", "config", str(stack.settings.prometheus_config)]),
        ("amtool", ["check-config", str(stack.settings.alertmanager_config)]),
    )
    for tool, words in checks:
        path = find(tool, stack.settings, reporter).path
        answer = subprocess.run([str(path), *words], capture_output=True, text=True, check=False)
        assert answer.returncode == 0, answer.stdout + answer.stderr


def test_a_killed_service_is_shown_and_started_again(stack: Stack) -> None:
    """Status says that a service ended and where its log is; `up` brings it back and keeps the rest."""
    before = {s["name"]: s["pid"] for s in stack.status()["services"]}
    os.kill(before["receiver"], signal.SIGKILL)
    wait_for(lambda: not psutil.pid_exists(before["receiver"]), 10)
    shown = stack.run("status")

    assert shown.returncode == 1
    assert re.search(r"^  receiver +ended +http://", shown.stdout, re.MULTILINE), shown.stdout
    assert str(stack.settings.logs_dir / "receiver.log") in shown.stdout
    assert stack.run("up").returncode == 0
    after = {s["name"]: s["pid"] for s in stack.status()["services"]}
    assert after["receiver"] != before["receiver"]
    assert after["engine"] == before["engine"]


def test_down_ends_every_process_and_up_again_works(stack: Stack) -> None:
    """After `down` nothing of ours runs, with children; a new `up` starts cleanly on the kept data."""
    assert stack.run("up").returncode == 0
    parents = [psutil.Process(s["pid"]) for s in stack.status()["services"]]
    family = [process for parent in parents for process in (parent, *parent.children(recursive=True))]
    answer = stack.run("down")

    assert answer.returncode == 0
    assert "prometheus" in answer.stdout
    assert [process for process in family if process.is_running() and process.status() != "zombie"] == []
    assert stack.run("status").returncode == 3
    assert stack.run("up", "sim", "--base-port", str(stack.settings.base_port)).returncode == 0
    assert stack.status()["engines"][0]["state"] == "up"
