"""Every query of every page on a real Prometheus that judges a running engine, and pictures of all of it."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dashboards.check import live
from dashboards.registry import build_all
from inferwatch.promapi import Prometheus
from inferwatch.stack import backfill, binaries
from inferwatch.stack.progress import to_stderr
from inferwatch.stack.services import SIM_MODEL, SIM_REQUESTS_PER_SECOND
from inferwatch.stack.settings import PORT_OFFSETS, default_settings
from slo import spec

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

INFERWATCH = Path(sys.executable).with_name("inferwatch")
NEEDS_MORE_THAN_A_FEW_MINUTES = {  # cells want several windows of a minute; test_analysis.py waits for them
    "inferwatch-batching: Batch size × request rate (A)",
    "inferwatch-batching: Windows in the best region (A)",
    "inferwatch-kv-cache: Context length × latency (A)",
    "inferwatch-kv-cache: KV hit rate × sequence length (A)",
    "inferwatch-batching: Batch limit to set (A)",  # five good windows of a minute in one cell
    "inferwatch-batching: What the best region spans (A)",
    "inferwatch-batching: What the best region spans (B)",
    "inferwatch-batching: What the best region spans (C)",
    "inferwatch-batching: What the best region spans (D)",
}
NEEDS_A_FAULT = {
    "inferwatch-slo: Alerts firing (A)",
    "inferwatch-slo: Alerts that fire now (A)",
    "inferwatch-stack: Why probes failed (A)",
    "inferwatch-stack: Notifications sent (A)",
    "inferwatch-exporters: Engine pages (B)",
}
NEEDS_SPANS = {  # the collector makes these counters with the first span, and no traced service runs here
    f"inferwatch-collector: Refused and lost ({letter})" for letter in "ABCD"
}
MAY_BE_EMPTY = NEEDS_MORE_THAN_A_FEW_MINUTES | NEEDS_A_FAULT | NEEDS_SPANS


@dataclass(frozen=True)
class Running:
    """A stack of this file's own: its folder and its Prometheus."""

    folder: Path
    prometheus: str

    def inferwatch(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """A subcommand on this stack."""
        return subprocess.run(
            [str(INFERWATCH), *words, "--dir", str(self.folder)], capture_output=True, text=True, check=False
        )


def _held(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_base_port() -> int:
    """A base port whose whole range is free now."""
    for base in range(25_000, 32_000, 200):
        if not any(_held(base + offset) for offset in PORT_OFFSETS.values()):
            return base
    raise AssertionError("no free range of ports")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """
    The simulated engine under its own load, until rules of the slow interval ran and a quantile is there.

    A past is written first: budgets are summed from five-minute samples, which nobody should wait for here.
    """
    base = free_base_port()
    folder = tmp_path_factory.mktemp("dashboards") / "run"
    settings = default_settings(run_dir=folder, base_port=base)
    promtool = binaries.resolve("promtool", settings, to_stderr()).path
    history = [backfill.ServiceHistory("llm", SIM_MODEL, SIM_REQUESTS_PER_SECOND)]
    backfill.backfill(spec.load(), settings.data_dir / "prometheus", history, promtool)
    found = Running(folder, settings.url("prometheus"))
    started = found.inferwatch("up", "sim", "--base-port", str(base))
    try:
        assert started.returncode == 0, started.stderr
        wait_for_data(found.prometheus)
        yield found
    finally:
        found.inferwatch("down")


def wait_for_data(url: str, seconds: float = 240) -> None:
    """Return when a latency quantile, a signal and a grid of windows are there."""
    deadline = time.monotonic() + seconds
    wanted = (
        "inferwatch:latency_seconds:quantile5m",
        "inferwatch:prefix_cache_hit:ratio",
        "sum(llm_analysis_windows) > 0",
        "slo:period_error_budget_remaining:ratio",
    )
    with Prometheus(url) as prometheus:
        while not all(prometheus.query(expr) for expr in wanted):
            missing = [expr for expr in wanted if not prometheus.query(expr)]
            assert time.monotonic() < deadline, f"no data within {seconds} s: {missing}"
            time.sleep(2)


def test_every_query_has_data_in_its_unit(running: Running) -> None:
    """Nothing is queried that nobody exports, values can be what their unit says, legends resolve."""
    boards = list(build_all(spec.load()).values())
    missing: set[str] = set()
    for _ in range(
        4
    ):  # one scrape that timed out on a busy machine leaves a query without data at that instant
        report = live(boards, running.prometheus, "5m", spec.load().intervals.scrape_seconds)
        assert report.faults == []
        assert [told for told in report.not_examined if "without our exporter" in told] == []
        assert report.with_data > 75
        before, missing = missing, set(report.without_data) - MAY_BE_EMPTY
        missing = missing & before if before else missing
        if not missing:
            break
        time.sleep(10)
    assert missing == set()


def test_the_command_prints_counts(running: Running) -> None:
    """`inferwatch dashboards check` finds the running stack by itself."""
    done = running.inferwatch("dashboards", "check", "--range", "5m")
    assert done.returncode == 0, done.stdout + done.stderr
    for count in (
        "dashboards ",
        "panels ",
        "heatmaps ",
        "queries ",
        "queries with data ",
        "uncovered metrics ",
    ):
        assert any(line.startswith(count) for line in done.stdout.splitlines()), count


def test_all_pages_are_drawn(running: Running, tmp_path: Path) -> None:
    """A page and a picture each, and no panel that failed."""
    done = running.inferwatch("render", "--all", "--range", "5m", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "failed:" not in done.stdout
    for uid in build_all(spec.load()):
        assert (tmp_path / f"{uid}.png").read_bytes().startswith(b"\x89PNG")
        assert "<svg" in (tmp_path / f"{uid}.html").read_text(encoding="utf-8")


def test_a_recording_of_a_real_gpu_is_drawn(tmp_path: Path) -> None:
    """Pages recorded beside a vLLM on an H200: the GPU page has data in every panel but one.

    That one is the time throttled: the chip never was.
    """
    recording = Path(__file__).parents[1] / "fixtures" / "node" / "h200-vllm.prom.gz"
    words = ["render", "inferwatch-gpu-host", "--recording", str(recording), "--out", str(tmp_path)]
    done = subprocess.run([str(INFERWATCH), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "15 panels with data, 1 empty, 0 failed" in done.stdout
    assert "not throttled" in (tmp_path / "inferwatch-gpu-host.html").read_text(encoding="utf-8")
