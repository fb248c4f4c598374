"""What binds a GPU, on recordings and at the edges of the rule."""

from typing import Any

import pytest

from exporters.node.bound import judge
from slo.node import Bound

RULE = Bound(idle_below_ratio=0.05, saturated_from_ratio=0.5)


def _means(sm: float, tensor: float, dram: float, **pipes: float) -> dict[str, float]:
    return {
        "llm_gpu_sm_active_ratio": sm,
        "llm_gpu_tensor_active_ratio": tensor,
        "llm_gpu_dram_bandwidth_ratio": dram,
        **pipes,
    }


@pytest.mark.parametrize(("name", "kind"), [("idle", "idle"), ("compute", "compute"), ("memory", "memory")])
def test_the_recorded_h200_is_told_right(drive: Any, phase: Any, name: str, kind: str) -> None:
    """Utilisation says 100 % in both busy phases; what binds differs."""
    shown = drive(phase(name))
    shown.run(seconds=3)
    scrape = shown.scrape()

    assert [have["kind"] for have, value in scrape.all("llm_gpu_bound") if value == 1] == [kind]
    assert len(scrape.all("llm_gpu_bound")) == 4
    assert scrape.states("llm_gpu_gpm_state") == {"supported"}


def test_work_per_byte_is_tensor_over_dram(drive: Any, phase: Any) -> None:
    """Compute phase of the recording: 93.371 % of the tensor roof over 17.5092 % of the bandwidth."""
    shown = drive(phase("compute"))
    shown.run(seconds=3)

    assert shown.scrape().one("llm_gpu_work_per_byte_ratio") == pytest.approx(93.371 / 17.5092)


@pytest.mark.parametrize(
    ("means", "kind"),
    [
        (_means(0.049, 0.0, 0.049), "idle"),
        (_means(0.05, 0.0, 0.0), "other"),
        (_means(0.9, 0.5, 0.5), "compute"),
        (_means(0.9, 0.499, 0.499), "other"),
        (_means(0.9, 0.499, 0.5), "memory"),
        (_means(0.9, 0.0, 0.2, fp32=0.7), "compute"),
        (_means(0.22, 0.02, 0.09), "other"),  # the recorded vLLM at its busiest: host-bound
    ],
)
def test_the_edges_of_the_rule(means: dict[str, float], kind: str) -> None:
    """Idle is strictly under its limit, bound begins at its own; at the ridge compute binds."""
    verdict = judge(means, RULE)

    assert verdict is not None
    assert verdict.kind == kind


def test_without_gpm_there_is_no_verdict(drive: Any, phase: Any) -> None:
    """An older GPU has no bound series, and a state that says why."""
    machine = phase("compute")
    device = {k: v for k, v in machine["devices"][0].items() if k != "gpm"}
    shown = drive({"devices": [device]})
    shown.run(seconds=3)
    scrape = shown.scrape()

    assert scrape.all("llm_gpu_bound") == []
    assert scrape.all("llm_gpu_sm_active_ratio") == []
    assert scrape.states("llm_gpu_gpm_state") == {"unsupported"}
    # PCIe traffic then comes from NVML itself: 6159 KB/s sent in the recording.
    assert scrape.one("llm_gpu_pcie_bytes_per_second", direction="sent") == 6159 * 1024


def test_gpm_in_use_by_another_profiler_is_a_state(drive: Any, phase: Any) -> None:
    """DCGM profiling or Nsight holds the counters."""
    machine = phase("compute")
    device = {**machine["devices"][0], "gpm": {"raise": "NVML_ERROR_IN_USE"}}
    shown = drive({"devices": [device]})
    shown.run(seconds=2)

    assert shown.scrape().states("llm_gpu_gpm_state") == {"in_use"}
