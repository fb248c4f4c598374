"""PCIe link, replays, errors, and traffic where GPM does not tell it."""

from collections.abc import Iterator

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names

_LINK = (
    ("nvmlDeviceGetCurrPcieLinkGeneration", names.GPU_PCIE_LINK_GENERATION),
    ("nvmlDeviceGetMaxPcieLinkGeneration", names.GPU_PCIE_LINK_GENERATION_MAX),
    ("nvmlDeviceGetCurrPcieLinkWidth", names.GPU_PCIE_LINK_WIDTH),
    ("nvmlDeviceGetMaxPcieLinkWidth", names.GPU_PCIE_LINK_WIDTH_MAX),
)
_ERRORS = {
    173: "correctable",
    174: "naks_received",
    175: "receiver",
    176: "bad_tlp",
    177: "naks_sent",
    178: "bad_dllp",
    179: "non_fatal",
    180: "fatal",
    182: "lcrc",
    183: "lane",
}
_DIRECTIONS = {"sent": 0, "received": 1}
_KIBIBYTE = 1024


def collect(gpu: Gpu) -> Iterator[Sample]:
    """Link state and counters."""
    for call, family in _LINK:
        number = gpu.ask.number("small", call)
        if number is not None:
            yield gpu.sample(family, number)
    replays = gpu.ask.number("count", "nvmlDeviceGetPcieReplayCounter")
    if replays is not None:
        yield gpu.sample(names.GPU_PCIE_REPLAYS_TOTAL, replays)
    for number, count in gpu.ask.fields("count", tuple(_ERRORS)).items():
        yield gpu.sample(names.GPU_PCIE_ERRORS_TOTAL, count, kind=_ERRORS[number])


def throughput(gpu: Gpu) -> Iterator[Sample]:
    """Traffic over NVML's own 20 ms, for which each call blocks: only for GPUs without GPM."""
    for direction, number in _DIRECTIONS.items():
        kibibytes = gpu.ask.number("count", "nvmlDeviceGetPcieThroughput", number)
        if kibibytes is not None:
            yield gpu.sample(names.GPU_PCIE_BYTES_PER_SECOND, kibibytes * _KIBIBYTE, direction=direction)
