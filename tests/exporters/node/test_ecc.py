"""ECC, remapping, retired pages, recovery action."""

import json
from typing import Any


def test_memory_health(drive: Any, phase: Any) -> None:
    """Counts by severity and lifetime; pending and failed remaps as states."""
    machine = json.loads(json.dumps(phase("idle")))
    calls = machine["devices"][0]["calls"]
    calls["nvmlDeviceGetTotalEccErrors:1:1"] = {"return": 3}
    calls["nvmlDeviceGetRemappedRows"] = {"return": [2, 1, 1, 0]}
    machine["devices"][0]["fields"]["230"] = 2
    shown = drive(machine)
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_ecc_errors_total", severity="uncorrected", lifetime="aggregate") == 3
    assert scrape.one("llm_gpu_ecc_errors_total", severity="uncorrected", lifetime="volatile") == 0
    assert scrape.one("llm_gpu_remapped_rows_total", severity="corrected") == 2
    assert scrape.one("llm_gpu_remapped_rows_total", severity="uncorrected") == 1
    assert scrape.one("llm_gpu_row_remap_pending") == 1
    assert scrape.one("llm_gpu_row_remap_failed") == 0
    assert scrape.one("llm_gpu_recovery_action") == 2


def test_older_gpus_retire_pages(drive: Any) -> None:
    """Before Ampere there are retired pages instead of remapped rows."""
    calls = {
        "nvmlDeviceGetUUID": {"return": "GPU-v100"},
        "nvmlDeviceGetRetiredPages:0": {"return": [4096, 8192]},
        "nvmlDeviceGetRetiredPages:1": {"return": []},
    }
    shown = drive({"devices": [{"index": 0, "calls": calls}]})
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_retired_pages_total", cause="single_bit") == 2
    assert scrape.one("llm_gpu_retired_pages_total", cause="double_bit") == 0
    assert scrape.all("llm_gpu_row_remap_failed") == []
