"""Temperatures of GPU and memory, the limits, and the margin left before the GPU slows down."""

from collections.abc import Iterator

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names

_GPU = 0
_MEMORY_TEMPERATURE = 82
_LIMITS = {"shutdown": 0, "slowdown": 1, "memory_max": 2, "gpu_max": 3}


def read(gpu: Gpu) -> Iterator[tuple[str, float]]:
    """(sensor, °C) of what can be had; raises GpuLost, DriverGone."""
    core = gpu.ask.number("temperature", "nvmlDeviceGetTemperatureV", _GPU)
    if core is None:
        core = gpu.ask.number("temperature", "nvmlDeviceGetTemperature", _GPU)
    if core is not None:
        yield "gpu", core
    memory = gpu.ask.fields("temperature", (_MEMORY_TEMPERATURE,)).get(_MEMORY_TEMPERATURE)
    if memory:  # 0 °C is what GPUs without the sensor answer
        yield "memory", memory


def collect(gpu: Gpu) -> Iterator[Sample]:
    """Limits and margin: the driver's own margin, else slowdown limit less temperature."""
    limits = {}
    for name, number in _LIMITS.items():
        limit = gpu.ask.number("temperature", "nvmlDeviceGetTemperatureThreshold", number)
        if limit is not None:
            limits[name] = limit
            yield gpu.sample(names.GPU_TEMPERATURE_LIMIT_CELSIUS, limit, limit=name)
    margin = gpu.ask.number("temperature", "nvmlDeviceGetMarginTemperature")
    if margin is None and "slowdown" in limits:
        core = dict(read(gpu)).get("gpu")
        margin = None if core is None else limits["slowdown"] - core
    if margin is not None:
        yield gpu.sample(names.GPU_TEMPERATURE_MARGIN_CELSIUS, margin)
