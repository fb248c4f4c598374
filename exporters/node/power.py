"""Power limit and energy; NVML counts in thousandths, we serve watts and joules."""

from collections.abc import Iterator

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names


def collect(gpu: Gpu) -> Iterator[Sample]:
    """A limit of 0 is no limit: no series, so that nothing is divided by it."""
    limit = gpu.ask.number("milliwatts", "nvmlDeviceGetEnforcedPowerLimit")
    if limit:
        yield gpu.sample(names.GPU_POWER_LIMIT_WATTS, limit / 1000)
    energy = gpu.ask.number("count", "nvmlDeviceGetTotalEnergyConsumption")
    if energy is not None:
        yield gpu.sample(names.GPU_ENERGY_JOULES_TOTAL, energy / 1000)
