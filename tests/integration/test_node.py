"""The node agent on this machine: a real process, a real cgroup, no GPU."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import slo.spec
from exporters.node.agent import Agent
from exporters.node.cgroups import root
from exporters.node.config import NodeConfig
from exporters.node.nvml import LiveNvml

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
# Always runnable, so that busy plus run-queue time is wall time however many others want the CPU, but for what the
# host of a virtual machine takes of it.
SPIN = "while True: pass"
CPU = min(os.sched_getaffinity(0))


@contextmanager
def spinning_engine() -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a vLLM server in one process and is bound to one CPU."""
    process = subprocess.Popen([sys.executable, "-c", SPIN, "vllm", "serve", "m", "--port", "8765"])
    os.sched_setaffinity(process.pid, {CPU})
    try:
        yield process
    finally:
        process.kill()
        process.wait(10)


@contextmanager
def own_cgroup(pid: int) -> Iterator[str | None]:
    """Put a process into a new cgroup v2 where this machine lets us; yields its path, else None."""
    _, mount = root(Path("/sys"))
    made = None if mount is None else mount / f"inferwatch-test-{pid}"
    try:
        if made is not None:
            made.mkdir()
            (made / "cgroup.procs").write_text(str(pid))
    except OSError:
        made = None
    try:
        yield None if made is None else f"/{made.name}"
    finally:
        if made is not None and mount is not None:
            (mount / "cgroup.procs").write_text(str(pid))
            made.rmdir()


def test_a_real_process_in_a_real_cgroup() -> None:
    """Busy, waiting and wall time of a spinning thread agree; its cgroup is read where v2 can be written."""
    state, _ = root(Path("/sys"))
    with spinning_engine() as engine, own_cgroup(engine.pid) as path:
        agent = Agent(LiveNvml(), NodeConfig("here"), slo.spec.load().node)
        stolen = psutil.cpu_times(percpu=True)[CPU].steal
        for _ in range(3):
            now = time.monotonic()
            agent.host.process_round(now)
            agent.host.thread_round(now)
            time.sleep(1.0)
        text = agent.scrape("test").decode()
        stolen = psutil.cpu_times(percpu=True)[CPU].steal - stolen

    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    core = '{instance="http://127.0.0.1:8765",dp_rank="0",node="here"}'
    wall = float(samples[f"llm_engine_core_wall_seconds_total{core}"])
    busy = float(samples[f"llm_engine_core_busy_seconds_total{core}"])
    waited = float(samples[f"llm_engine_core_runqueue_seconds_total{core}"])
    assert wall > 1.5
    assert busy + waited + stolen == pytest.approx(wall, rel=0.1)
    assert float(samples[f"llm_engine_core_bound_cpus{core}"]) == (0 if os.cpu_count() == 1 else 1)
    assert float(samples[f"llm_engine_core_on_mask_seconds_total{core}"]) == pytest.approx(busy)
    assert samples[f'llm_node_cgroup_state{{state="{state}"}}'] == "1"
    if path is None:
        # No cgroup of our own could be made here (v1 only, or read-only): a state, and nothing invented.
        assert not any(f'tenant="inferwatch-test-{engine.pid}"' in name for name in samples)
        return
    tenant = f'tenant="{path[1:]}",cgroup="{path}",node="here"'
    used = float(samples[f'llm_cgroup_cpu_seconds_total{{{tenant},mode="total"}}'])
    assert 0 < used <= wall + 2
    assert f'llm_cgroup_pressure_seconds_total{{{tenant},resource="cpu",share="some"}}' in samples


def test_the_command_serves_a_node_without_a_gpu() -> None:
    """`python -m exporters node` with no driver: 200, the reason in one series, the host's series beside it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "exporters", "node", "--listen", "127.0.0.1:0"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        url = ""
        for line in process.stderr:
            if "listening on " in line:
                url = line.rpartition(" ")[2].strip()
                break
        with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
    finally:
        process.terminate()
        assert process.wait(15) == 0
        process.stderr.close()

    states = [
        line for line in text.splitlines() if line.startswith("llm_node_nvml_state") and line.endswith(" 1")
    ]
    assert len(states) == 1
    has_driver = Path("/proc/driver/nvidia/version").exists()
    assert ('state="ok"' in states[0]) == has_driver
    assert "llm_host_cpus " in text
    assert "llm_host_memory_total_bytes " in text
