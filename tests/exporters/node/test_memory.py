"""Used and reserved apart, unified memory marked, settled memory."""

import json
from pathlib import Path
from typing import Any


def test_reserved_is_not_used(drive: Any, case: Any) -> None:
    """A68: an idle GPU uses nothing; used + free + reserved is the total."""
    shown = drive(case("A68-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    used = scrape.one("llm_gpu_memory_used_bytes", stat="last")
    assert used == 0
    assert scrape.one("llm_gpu_memory_reserved_bytes") == 322961408
    assert scrape.one("llm_gpu_memory_free_bytes") == 11488198656
    assert scrape.one("llm_gpu_memory_total_bytes") == 11811160064 == 0 + 322961408 + 11488198656
    assert scrape.one("llm_gpu_memory_used_includes_reserved") == 0


def test_a_driver_with_the_old_call_only_is_marked(drive: Any, case: Any) -> None:
    """A68: where only version 1 answers, used includes what the driver reserves, and says so."""
    machine = case("A68-nvml.json")
    del machine["devices"][0]["calls"]["nvmlDeviceGetMemoryInfo_v2"]
    shown = drive(machine)
    shown.run()
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_memory_used_bytes", stat="last") == 322961408
    assert scrape.one("llm_gpu_memory_used_includes_reserved") == 1
    assert scrape.all("llm_gpu_memory_reserved_bytes") == []


def test_unified_memory_is_the_hosts_and_marked(drive: Any, case: Any, roots: tuple[Path, Path]) -> None:
    """A27: a GB10 has no memory of its own; the rest is served."""
    meminfo = Path(__file__).resolve().parents[2] / "fixtures" / "node" / "cases" / "A27-meminfo.txt"
    (roots[0] / "meminfo").write_text(meminfo.read_text())
    shown = drive(case("A27-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_up") == 1
    assert scrape.one("llm_gpu_utilisation_ratio", stat="last") == 0
    assert scrape.one("llm_gpu_power_watts", stat="last") == 11.17
    assert scrape.one("llm_gpu_temperature_celsius", stat="last") == 35
    assert scrape.one("llm_gpu_memory_unified") == 1
    assert scrape.one("llm_gpu_memory_total_bytes") == 130663165952
    assert scrape.one("llm_gpu_memory_used_bytes") == (127600748 - 118566368) * 1024


def test_zeros_for_memory_are_unified_too(drive: Any, case: Any, roots: tuple[Path, Path]) -> None:
    """Some drivers answer zeros instead of Not Supported: never a total of 0."""
    (roots[0] / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    machine = case("A27-nvml.json")
    for name in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        machine["devices"][0]["calls"][name] = {"return": {"total": 0, "free": 0, "used": 0}}
    shown = drive(machine)
    shown.run()
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_memory_total_bytes") == 1024000
    assert scrape.one("llm_gpu_memory_unified") == 1


def test_memory_that_fails_for_another_reason_is_not_unified(
    drive: Any, case: Any, roots: tuple[Path, Path]
) -> None:
    """A fault of a discrete GPU's memory call must not bring the host's memory in."""
    (roots[0] / "meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 400 kB\n")
    machine = case("A27-nvml.json")
    for name in ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetMemoryInfo_v2"):
        machine["devices"][0]["calls"][name] = {"raise": "NVML_ERROR_UNKNOWN"}
    shown = drive(machine)
    shown.run()
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_memory_unified") == 0
    assert scrape.all("llm_gpu_memory_total_bytes") == []
    assert scrape.all("llm_gpu_memory_used_bytes") == []


def test_memory_settles_after_three_close_readings(drive: Any, phase: Any) -> None:
    """Three readings within 1.2 MB settle it; a jump unsettles it and the last settled value stays."""
    from exporters.node.recorded import RecordedNvml

    used = [5_000_000_000]

    class Growing(RecordedNvml):
        def call(self, name: str, *args: Any) -> Any:
            if name == "nvmlDeviceGetMemoryInfo":
                return {"total": 10**11, "reserved": 0, "free": 10**11 - used[0], "used": used[0]}
            return super().call(name, *args)

    shown = drive(Growing(json.loads(json.dumps(phase("idle"))), clock=lambda: 0.0))
    for step in (0, 600_000, 599_999):  # together 1 199 999 bytes: under 1.2 MB
        used[0] += step
        shown.now += 0.1
        shown.agent.gpu.sampler_round(shown.now)
    scrape = shown.scrape()
    assert scrape.one("llm_gpu_memory_settled") == 1
    assert scrape.one("llm_gpu_memory_settled_bytes") == (3 * 5_000_000_000 + 600_000 + 1_199_999) / 3

    used[0] += 600_001  # the last three now span exactly 1.2 MB
    shown.now += 0.1
    shown.agent.gpu.sampler_round(shown.now)
    scrape = shown.scrape()
    assert scrape.one("llm_gpu_memory_settled") == 0
    assert scrape.one("llm_gpu_memory_settled_bytes") == (3 * 5_000_000_000 + 600_000 + 1_199_999) / 3
