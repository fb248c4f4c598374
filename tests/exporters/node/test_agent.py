"""The whole agent: what a scrape waits for, and engines joined with GPUs."""

import threading
from pathlib import Path
from typing import Any

import pytest

from exporters.node.recorded import RecordedNvml


def _process(root: Path, pid: int, parent: int, argv: list[str], **files: str) -> None:
    folder = root / str(pid)
    (folder / f"task/{pid}").mkdir(parents=True)
    stat = f"{pid} ({argv[0][:15]}) S {parent} {'0 ' * 9}100 0 {'0 ' * 6}{pid} 0 10 {'0 ' * 14}1 0 0\n"
    (folder / "stat").write_text(stat)
    (folder / f"task/{pid}/stat").write_text(stat)
    (folder / f"task/{pid}/status").write_text("Cpus_allowed_list:\t0-1\nvoluntary_ctxt_switches:\t1\n")
    (folder / f"task/{pid}/schedstat").write_text("1000000000 0 1\n")
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in argv))
    for name, text in files.items():
        (folder / name).write_text(text)


def test_a_scrape_asks_nvml_nothing(drive: Any, phase: Any) -> None:
    """However slow NVML is, a scrape only tells what is known."""
    nvml = RecordedNvml(phase("compute"), clock=lambda: 0.0)
    shown = drive(nvml)
    shown.run(seconds=2)
    before = nvml.calls

    scrape = shown.scrape()

    assert nvml.calls == before
    assert scrape.one("llm_gpu_utilisation_ratio", stat="last") == 1


def test_a_scrape_does_not_wait_for_a_call_that_hangs(drive: Any, phase: Any) -> None:
    """The driver holds a call for ever; the scrape is answered all the same."""
    hang = threading.Event()

    class Hanging(RecordedNvml):
        held = False

        def call(self, name: str, *args: Any) -> Any:
            if self.held:
                hang.wait(60)
            return super().call(name, *args)

    nvml = Hanging(phase("compute"), clock=lambda: 0.0)
    shown = drive(nvml)
    shown.run()
    nvml.held = True
    sampler = threading.Thread(target=shown.agent.gpu.sampler_round, args=(shown.now,), daemon=True)
    sampler.start()
    answered: list[Any] = []
    scraper = threading.Thread(target=lambda: answered.append(shown.scrape()))
    scraper.start()
    scraper.join(10)
    hang.set()
    sampler.join(10)

    assert answered, "the scrape waited for NVML"
    assert answered[0].one("llm_gpu_up") == 1


def test_a_gpu_is_joined_with_its_engine_by_pid(drive: Any, phase: Any, roots: tuple[Path, Path]) -> None:
    """The recording's pid 418 is the engine core below a vLLM server."""
    proc, sys = roots
    _process(proc, 400, 1, ["vllm", "serve", "org/m", "--port=8123"], cgroup="0::/tenants/acme\n")
    _process(proc, 418, 400, ["VLLM::EngineCore_DP2"])
    (proc / "stat").write_text("cpu  1 0 1 1 1 0 0 0\ncpu0 1 0 1 1 1 0 0 0\ncpu1 1 0 1 1 1 0 0 0\n")
    (sys / "fs/cgroup/tenants/acme").mkdir(parents=True)
    (sys / "fs/cgroup/cgroup.controllers").write_text("memory\n")
    (sys / "fs/cgroup/tenants/acme/memory.current").write_text("4096\n")
    (sys / "bus/pci/devices/0000:00:06.0").mkdir(parents=True)
    (sys / "bus/pci/devices/0000:00:06.0/numa_node").write_text("1\n")
    (sys / "devices/system/node/node0").mkdir(parents=True)
    (sys / "devices/system/node/node0/cpulist").write_text("0-1\n")

    shown = drive(phase("compute"))
    shown.run()
    shown.run()
    scrape = shown.scrape()

    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    (labels, value), *rest = scrape.all("llm_engine_gpu_info")
    assert (labels, value, rest) == (
        {"instance": "http://127.0.0.1:8123", "dp_rank": "2", "uuid": uuid, "node": "node-a"},
        1,
        [],
    )
    assert (
        scrape.one(
            "llm_gpu_process_memory_bytes", pid="418", engine_instance="http://127.0.0.1:8123", model="org/m"
        )
        == 1050673152
    )
    core = {"instance": "http://127.0.0.1:8123", "dp_rank": "2"}
    assert scrape.one("llm_engine_core_wall_seconds_total", **core) == pytest.approx(1.0)
    assert scrape.one("llm_engine_core_busy_seconds_total", **core) == 0
    assert scrape.one("llm_engine_core_numa_node", **core) == 0
    assert scrape.one("llm_gpu_numa_node") == 1
    assert scrape.one("llm_cgroup_memory_bytes", tenant="acme", cgroup="/tenants/acme") == 4096
    assert scrape.states("llm_node_cgroup_state") == {"v2"}


def test_pids_hidden_by_a_container_leave_the_environment(
    drive: Any, phase: Any, roots: tuple[Path, Path]
) -> None:
    """NVML lists no process; CUDA_VISIBLE_DEVICES names the card."""
    machine = phase("idle")
    uuid = "GPU-00000000-0000-0000-0000-000000000001"
    _process(roots[0], 400, 1, ["vllm", "serve", "m"], environ=f"A=1\0CUDA_VISIBLE_DEVICES={uuid}\0")
    shown = drive(machine)
    shown.run()

    assert [have["uuid"] for have, _ in shown.scrape().all("llm_engine_gpu_info")] == [uuid]


def test_every_gpu_series_carries_the_four_labels(drive: Any, phase: Any) -> None:
    """Joinable on uuid, readable by model and bus; vLLM's model_name stays free."""
    shown = drive(phase("memory"))
    shown.run(seconds=2)
    scrape = shown.scrape()

    gpu_samples = [
        labels
        for name, labels, _ in scrape.samples
        if name.startswith("llm_gpu_") and name != "llm_gpu_xid_watched"
    ]
    assert len(gpu_samples) > 100
    for labels in gpu_samples:
        assert {"uuid", "gpu", "gpu_model", "pci_bus_id"} <= labels.keys()
        assert "model_name" not in labels


def test_readings_that_stopped_are_not_served(drive: Any, phase: Any) -> None:
    """A sampler that hangs since a minute leaves no stale utilisation or temperature behind."""
    shown = drive(phase("compute"))
    shown.run(seconds=2)
    shown.now += 300
    scrape = shown.scrape()

    assert scrape.all("llm_gpu_utilisation_ratio") == []
    assert scrape.all("llm_gpu_temperature_celsius") == []
    assert scrape.all("llm_gpu_power_limit_watts") == []
    assert scrape.one("llm_gpu_up") == 1


def test_no_series_stands_twice_in_the_first_scrapes(drive: Any, phase: Any) -> None:
    """PCIe traffic is asked of the link before GPM's first reading, and told by GPM after it: never by both."""
    shown = drive(RecordedNvml(phase("compute"), clock=lambda: 0.0))  # its slow round was, and no GPM yet
    for _ in range(3):
        text = shown.agent.scrape("prometheus", shown.now).decode()
        series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
        assert len(series) == len(set(series))
        assert sum(line.startswith("llm_gpu_pcie_bytes_per_second{") for line in series) in (0, 2)
        shown.now += 2.0
        shown.agent.gpu.gpm_round(shown.now)
    assert shown.scrape().one("llm_gpu_pcie_bytes_per_second", direction="sent") > 0
