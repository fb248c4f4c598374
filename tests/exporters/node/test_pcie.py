"""PCIe link, errors, traffic."""

from typing import Any


def test_pcie_link_and_errors(drive: Any, phase: Any) -> None:
    """The recording: generation 5, 16 lanes, no replay, 86 lane errors."""
    shown = drive(phase("compute"))
    shown.run(seconds=2)
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_pcie_link_generation") == 5
    assert scrape.one("llm_gpu_pcie_link_width") == 16
    assert scrape.one("llm_gpu_pcie_replays_total") == 0
    assert scrape.one("llm_gpu_pcie_errors_total", kind="lane") == 86
    # GPM: 5.6785 MiB/s sent.
    assert round(scrape.one("llm_gpu_pcie_bytes_per_second", direction="sent")) == round(5.6785 * 2**20)
