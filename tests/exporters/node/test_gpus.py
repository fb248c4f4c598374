"""Identity, states, and GPUs that are lost and come back."""

import json
from typing import Any

import pytest

from exporters.node.nvml import NvmlError
from exporters.node.recorded import RecordedNvml


def test_bytes_and_str_become_the_same_clean_labels(drive: Any, case: Any) -> None:
    """A26: one device answers bytes, one str."""
    shown = drive(case("A26-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    labels = [have for have, _ in scrape.all("llm_gpu_up")]
    assert [(have["gpu_model"], have["uuid"], have["pci_bus_id"]) for have in labels] == [
        ("NVIDIA L4", "GPU-1111", "00000000:17:00.0"),
        ("NVIDIA L4", "GPU-2222", "00000000:65:00.0"),
    ]
    assert "b'" not in scrape.text


def test_lost_gpus_cost_only_themselves(drive: Any, case: Any) -> None:
    """A30: of four GPUs one is lost at its handle and one while it is read."""
    shown = drive(case("A30-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    assert scrape.one("llm_node_gpus_expected") == 4
    assert scrape.one("llm_node_gpus_healthy") == 2
    assert scrape.states("llm_node_nvml_state") == {"lost"}
    assert scrape.one("llm_gpu_up", uuid="GPU-2") == 0
    assert {
        have["uuid"]: value
        for have, value in scrape.all("llm_gpu_temperature_celsius", sensor="gpu", stat="last")
    } == {"GPU-0": 50, "GPU-3": 51}


def test_a_gpu_that_falls_off_the_bus_loses_its_series_and_comes_back(drive: Any, h200: Any) -> None:
    """XID 79: no reading stays behind, the state says so, and the GPU is served again once it answers."""
    frame = next(f for f in h200["frames"] if f["phase"] == "idle")
    lost = json.loads(json.dumps(frame))
    lost["devices"][0]["calls"] = {
        name: {"raise": "NVML_ERROR_GPU_IS_LOST"} for name in lost["devices"][0]["calls"]
    }
    clock = [0.0]
    document = {"frames": [{**frame, "seconds": 10}, {**lost, "seconds": 10}]}
    shown = drive(RecordedNvml(document, clock=lambda: clock[0]))
    shown.run()
    assert shown.scrape().one("llm_gpu_power_watts", stat="last") == pytest.approx(98.284)

    clock[0] = 11.0
    shown.run()
    scrape = shown.scrape()
    assert scrape.states("llm_node_nvml_state") == {"lost"}
    assert scrape.one("llm_gpu_up") == 0
    assert scrape.all("llm_gpu_power_watts") == []
    assert scrape.all("llm_gpu_temperature_celsius") == []

    clock[0] = 21.0
    for _ in range(60):  # opening again is tried ever more seldom
        shown.now += 10
        shown.agent.gpu.slow_round(shown.now)
    shown.run()
    scrape = shown.scrape()
    assert scrape.states("llm_node_nvml_state") == {"ok"}
    assert scrape.one("llm_gpu_up") == 1
    assert scrape.one("llm_gpu_power_watts", stat="last") == pytest.approx(98.284)


@pytest.mark.parametrize(
    ("fault", "state"),
    [
        ("NVML_ERROR_LIBRARY_NOT_FOUND", "no_library"),
        ("NVML_ERROR_DRIVER_NOT_LOADED", "driver_not_loaded"),
        ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", "driver_mismatch"),
        ("NVML_ERROR_NO_PERMISSION", "no_permission"),
        ("NVML_ERROR_UNKNOWN", "error"),
    ],
)
def test_a_node_without_a_usable_driver_says_why_and_serves_the_rest(
    drive: Any, fault: str, state: str
) -> None:
    """One series tells the reason; host series are there all the same."""
    shown = drive({"devices": [], "open": {"raise": fault}})
    shown.run()
    scrape = shown.scrape()

    assert scrape.states("llm_node_nvml_state") == {state}
    assert scrape.one("llm_node_gpus_healthy") == 0
    assert scrape.one("llm_node_pressure_readable") == 0
    assert scrape.all("llm_gpu_up") == []


def test_a_container_without_devices_is_a_state(drive: Any) -> None:
    """NVML opens and counts nothing."""
    shown = drive({"devices": []})
    shown.run()

    assert shown.scrape().states("llm_node_nvml_state") == {"no_devices"}


def test_missing_bindings_are_a_state(drive: Any) -> None:
    """The extra `node` was not installed."""

    class Unbound(RecordedNvml):
        def open(self) -> None:
            raise NvmlError(-1)

    shown = drive(Unbound({"devices": []}))

    assert shown.scrape().states("llm_node_nvml_state") == {"no_bindings"}


def test_fewer_gpus_than_configured_is_lost(drive: Any, phase: Any) -> None:
    """A GPU that never answered is known from the configuration only."""
    from exporters.node.config import NodeFile

    shown = drive(phase("idle"), NodeFile(expected_gpus=2))
    scrape = shown.scrape()

    assert scrape.one("llm_node_gpus_expected") == 2
    assert scrape.states("llm_node_nvml_state") == {"lost"}


def test_a_driver_that_goes_away_takes_gpu_series_with_it(drive: Any, phase: Any) -> None:
    """The driver was unloaded under the agent: no reading is left standing."""

    class Unloaded(RecordedNvml):
        gone = False

        def call(self, name: str, *args: Any) -> Any:
            if self.gone:
                raise NvmlError(9)
            return super().call(name, *args)

    nvml = Unloaded(phase("compute"), clock=lambda: 0.0)
    shown = drive(nvml)
    shown.run()
    nvml.gone = True
    shown.run()
    scrape = shown.scrape()

    assert scrape.states("llm_node_nvml_state") == {"driver_not_loaded"}
    assert scrape.all("llm_gpu_utilisation_ratio") == []
