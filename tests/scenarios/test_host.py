"""The written /proc and cgroup tree, read by the agent's own reader."""

from pathlib import Path

import pytest

from exporters.node.ask import Faults
from exporters.node.config import EngineEntry, NodeConfig, NodeFile, TenantEntry
from exporters.node.gpus import Fleet
from exporters.node.host_side import HostSide
from exporters.node.recorded import RecordedNvml
from inferwatch.scenarios.host import Host
from inferwatch.scenarios.shown import Core, Tenant


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Two engine cores, nothing passed yet."""
    return Host(tmp_path, {name: ("vllm", "serve", "--served-model-name", name) for name in ("one", "two")})


@pytest.fixture
def agent(tmp_path: Path) -> HostSide:
    """The agent's view of that tree."""
    file = NodeFile(
        engines=(
            EngineEntry(instance="one", match="--served-model-name one$"),
            EngineEntry(instance="two", match="--served-model-name two$"),
        ),
        tenants=(TenantEntry(tenant="t", cgroup="/t"),),
    )
    config = NodeConfig("node", tmp_path / "proc", tmp_path / "sys", file)
    return HostSide(config, Fleet(RecordedNvml({"devices": []}), Faults()), dict)


def numbers(agent: HostSide) -> dict[str, float]:
    """Family and labels -> value."""
    return {f"{sample.family}{{{sample.labels}}}": sample.value for sample in agent.samples()}


def find(found: dict[str, float], family: str, *words: str) -> float:
    """The one sample of that family that has these words in its labels."""
    (value,) = [v for k, v in found.items() if k.startswith(f"{family}{{") and all(w in k for w in words)]
    return value


def test_ten_seconds_of_a_core_and_a_tenant(host: Host, agent: HostSide) -> None:
    """Ten seconds at 60 %, 30 % waited, two CPUs half taken by others: 6, 3 and 6 + 2 × 5 seconds."""
    cores, tenants = {"one": Core(0.6, 0.3, 0.5), "two": Core(0.1)}, {"t": Tenant(0.5, 0.2)}
    host.advance(1.0, cores, tenants)
    host.write_cores()
    host.write_rest()
    agent.process_round(0.0)
    agent.thread_round(0.0)
    host.advance(10.0, cores, {"t": Tenant(0.5, 0.2, oom_kills=1)})
    host.write_cores()
    host.write_rest()
    agent.process_round(10.0)
    agent.thread_round(10.0)
    found = numbers(agent)

    assert find(found, "llm_engine_core_busy_seconds_total", 'instance="one"') == pytest.approx(6.0)
    assert find(found, "llm_engine_core_busy_seconds_total", 'instance="two"') == pytest.approx(1.0)
    assert find(found, "llm_engine_core_runqueue_seconds_total", 'instance="one"') == pytest.approx(3.0)
    on_cpus = find(found, "llm_engine_core_bound_cpus_busy_seconds_total", 'instance="one"')
    assert on_cpus == pytest.approx(16.0, abs=0.05)
    assert find(found, "llm_engine_core_bound_cpus", 'instance="one"') == 2
    # 11 s of ten periods each, half of them without quota; 2.2 s stalled.
    assert find(found, "llm_cgroup_cpu_periods_total", 'tenant="t"') == 110
    assert find(found, "llm_cgroup_cpu_throttled_periods_total", 'tenant="t"') == 55
    assert find(found, "llm_cgroup_memory_events_total", 'event="oom_kill"') == 1
    stalled = find(found, "llm_cgroup_pressure_seconds_total", 'resource="memory"', 'share="some"')
    assert stalled == pytest.approx(2.2)
