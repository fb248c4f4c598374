"""One field at a time: what is no value is dropped and counted, what fails costs only itself."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from exporters.node.ask import Faults, plausible

CASES = Path(__file__).resolve().parents[2] / "fixtures" / "node" / "cases"


def test_markers_of_no_value_are_dropped_and_counted(case: Any) -> None:
    """A31: seven readings of one poll, five of them impossible; a real 0 stays."""
    readings = case("A31-readings.json")
    quantities = {
        "memory_temp_c": "temperature",
        "nvlink_bytes": "count",
        "gpu_util_pct": "percent",
        "sm_active_ratio": "ratio",
        "gpu_temp_c": "temperature",
        "gpu_util_pct_spike": "percent",
        "fb_used_mib": "bytes",
    }
    faults = Faults()

    kept = {
        name: v
        for name, raw in readings.items()
        if (v := plausible(quantities[name], raw, faults)) is not None
    }

    assert kept == {"gpu_temp_c": 64, "fb_used_mib": 0}
    assert sum(faults.dropped.values()) == 5


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "12", None])
def test_what_is_no_finite_number_is_no_reading(value: object) -> None:
    """A bool is no percentage, and text is not parsed."""
    faults = Faults()

    assert plausible("percent", value, faults) is None
    assert faults.dropped == {"percent": 1}


def _answer(field: str, factor: float = 1) -> dict[str, Any]:
    """A field of nvidia-smi's CSV as the NVML answer behind it."""
    if field in ("[N/A]", "[Not Supported]"):
        return {"raise": "NVML_ERROR_NOT_SUPPORTED"}
    if field in ("[Unknown Error]", "ERR!"):
        return {"raise": "NVML_ERROR_UNKNOWN"}
    return {"return": round(float(field.split()[0]) * factor)}


def test_one_field_that_fails_costs_no_other(drive: Any) -> None:
    """A35: three GPUs with four kinds of non-values; numbers are kept field by field."""
    rows = list(csv.reader((CASES / "A35-smi.csv").read_text().splitlines(), skipinitialspace=True))[1:]
    devices = []
    for index, uuid, temperature, power, limit, fan, memory, utilisation in rows:
        used = _answer(memory, 2**20)
        info = (
            used if "raise" in used else {"return": {"total": 2**35, "free": 2**34, "used": used["return"]}}
        )
        rate = _answer(utilisation)
        devices.append(
            {
                "index": int(index),
                "calls": {
                    "nvmlDeviceGetUUID": {"return": uuid},
                    "nvmlDeviceGetTemperature": _answer(temperature),
                    "nvmlDeviceGetPowerUsage": _answer(power, 1000),
                    "nvmlDeviceGetEnforcedPowerLimit": _answer(limit, 1000),
                    "nvmlDeviceGetFanSpeed": _answer(fan),
                    "nvmlDeviceGetMemoryInfo": info,
                    "nvmlDeviceGetUtilizationRates": {"return": {"gpu": rate["return"], "memory": 0}},
                },
            }
        )
    shown = drive({"devices": devices})
    shown.run()
    scrape = shown.scrape()

    kept: dict[str, dict[str, float]] = {}
    for family, name, labels, unit in (
        ("llm_gpu_temperature_celsius", "temp", {"stat": "last"}, 1),
        ("llm_gpu_power_watts", "power", {"stat": "last"}, 1),
        ("llm_gpu_power_limit_watts", "limit", {}, 1),
        ("llm_gpu_memory_used_bytes", "mem_mib", {"stat": "mean"}, 2**20),
        ("llm_gpu_utilisation_ratio", "util", {"stat": "last"}, 0.01),
    ):
        for have, value in scrape.all(family, **labels):
            kept.setdefault(have["uuid"], {})[name] = round(value / unit, 6)
    assert kept == {
        "GPU-0": {"temp": 45, "power": 80.12, "limit": 300, "mem_mib": 1000, "util": 12},
        "GPU-1": {"limit": 130, "mem_mib": 1, "util": 93},
        "GPU-2": {"temp": 35, "power": 11.17, "util": 0},
    }
    assert {have["call"] for have, _ in scrape.all("llm_gpu_read_errors_total", uuid="GPU-1")} == {
        "nvmlDeviceGetTemperature",
        "nvmlDeviceGetPowerUsage",
    }
    assert scrape.all("llm_gpu_read_errors_total", uuid="GPU-0") == []


def test_what_is_not_supported_is_asked_once(drive: Any, phase: Any) -> None:
    """A driver that does not know a call is not bothered ten times a second."""
    from exporters.node.recorded import RecordedNvml

    class Counting(RecordedNvml):
        asked: list[str] = []  # noqa: RUF012 - one instance a test

        def call(self, name: str, *args: Any) -> Any:
            self.asked.append(name)
            return super().call(name, *args)

    machine = json.loads(json.dumps(phase("idle")))
    machine["devices"][0]["calls"]["nvmlDeviceGetPowerUsage"] = {"raise": "NVML_ERROR_NOT_SUPPORTED"}
    nvml = Counting(machine, clock=lambda: 0.0)
    shown = drive(nvml)
    shown.run(seconds=3)

    assert nvml.asked.count("nvmlDeviceGetPowerUsage") == 1
    assert shown.scrape().all("llm_gpu_power_watts") == []
