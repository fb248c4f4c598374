"""Recording what NVML answers, and answering from that recording."""

import json
from pathlib import Path
from typing import Any

from exporters.node.recorded import RecordedNvml
from exporters.node.recorder import Recorder


def test_a_recording_answers_as_what_it_recorded(drive: Any, phase: Any, tmp_path: Path) -> None:
    """The agent sees the same GPU through the recording of a recording; ids are replaced."""
    machine = json.loads(json.dumps(phase("memory")))
    machine["devices"][0]["calls"]["nvmlDeviceGetUUID"] = {"return": "GPU-secret"}
    recorder = Recorder(RecordedNvml(machine, clock=lambda: 0.0))
    recorder.begin("memory")
    first = drive(recorder)
    first.run(seconds=2)
    direct = first.scrape()
    recorder.save(tmp_path / "made.json", "a test", ["memory"])

    text = (tmp_path / "made.json").read_text()
    second = drive(RecordedNvml.load(tmp_path / "made.json", clock=lambda: 0.0))
    second.run(seconds=2)
    replayed = second.scrape()

    assert "GPU-secret" not in text + direct.text
    for family in (
        "llm_gpu_bound",
        "llm_gpu_power_watts",
        "llm_gpu_memory_used_bytes",
        "llm_gpu_memory_reserved_bytes",
        "llm_gpu_pcie_errors_total",
        "llm_gpu_temperature_limit_celsius",
        "llm_gpu_process_memory_bytes",
        "llm_gpu_remapped_rows_total",
    ):
        assert direct.all(family), family
        assert replayed.all(family) == direct.all(family), family


def test_a_frame_that_asked_less_keeps_what_was_known(phase: Any) -> None:
    """Slow readings are taken seldom: a short frame inherits them from the one before."""
    recorder = Recorder(RecordedNvml(phase("idle"), clock=lambda: 0.0))
    handle = recorder.call("nvmlDeviceGetHandleByIndex", 0)
    recorder.call("nvmlDeviceGetEnforcedPowerLimit", handle)
    recorder.begin("next")
    recorder.call("nvmlDeviceGetPowerUsage", handle)

    (frame,) = recorder.document("", ["next"])["frames"]

    calls = frame["devices"][0]["calls"]
    assert calls["nvmlDeviceGetEnforcedPowerLimit"] == {"return": 700000}
    assert calls["nvmlDeviceGetPowerUsage"] == {"return": 98284}
