"""NVLink: links, traffic, errors."""

import json
from typing import Any


def test_a_gpu_without_nvlink_has_no_link_series(drive: Any, phase: Any) -> None:
    """One H200 alone: NotSupported for link 0."""
    shown = drive(phase("compute"))

    assert shown.scrape().all("llm_gpu_nvlink_up") == []


def test_nvlink_counters_become_bytes(drive: Any, phase: Any) -> None:
    """Two links, one down; KiB of data for all links together; errors a link."""
    machine = json.loads(json.dumps(phase("idle")))
    device = machine["devices"][0]
    for name in [n for n in device["calls"] if "NvLink" in n]:
        del device["calls"][name]
    device["calls"] |= {
        "nvmlDeviceGetNvLinkState:0": {"return": 1},
        "nvmlDeviceGetNvLinkState:1": {"return": 0},
        "nvmlDeviceGetNvLinkErrorCounter:0:0": {"return": 7},
    }
    device["fields"] |= {"138": 10, "139": 20}
    shown = drive(machine)
    scrape = shown.scrape()

    assert {have["link"]: value for have, value in scrape.all("llm_gpu_nvlink_up")} == {"0": 1, "1": 0}
    assert scrape.one("llm_gpu_nvlink_bytes_total", direction="sent") == 10240
    assert scrape.one("llm_gpu_nvlink_bytes_total", direction="received") == 20480
    assert scrape.one("llm_gpu_nvlink_errors_total", link="0", kind="replay") == 7
