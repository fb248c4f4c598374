"""Utilisation rates and performance state; MIG parents have none, which is no zero."""

from collections.abc import Iterator

from exporters.node.ask import plausible
from exporters.node.gpus import Gpu
from exporters.node.nvml import member
from exporters.node.samples import Sample
from slo.names import node as names


def read(gpu: Gpu) -> Iterator[tuple[str, float]]:
    """(family, ratio) of what can be had; raises GpuLost, DriverGone."""
    rates = gpu.ask.value("nvmlDeviceGetUtilizationRates")
    if rates is None:
        return
    for name, family in (
        ("gpu", names.GPU_UTILISATION_RATIO),
        ("memory", names.GPU_MEMORY_UTILISATION_RATIO),
    ):
        percent = plausible("percent", member(rates, name), gpu.ask.faults)
        if percent is not None:
            yield family, percent / 100


def collect(gpu: Gpu) -> Iterator[Sample]:
    """The performance state."""
    state = gpu.ask.number("small", "nvmlDeviceGetPerformanceState")
    if state is not None and state < 32:  # 32 is NVML's "unknown"
        yield gpu.sample(names.GPU_PERFORMANCE_STATE, state)
