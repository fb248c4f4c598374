"""Every 100 ms: utilisation, memory, power, SM clock and clock events of each GPU into windows."""

from collections import defaultdict

from exporters.node import clocks, memory, utilisation
from exporters.node.ask import plausible
from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from exporters.node.windows import SettledMemory, Window
from slo.names import node as names
from slo.node import Node

POWER = names.GPU_POWER_WATTS
SM_CLOCK = names.GPU_SM_CLOCK_HERTZ
_SM = 1


class GpuWindows:
    """The windows of one GPU, by family (and reason), made as readings come in."""

    def __init__(self, spec: Node) -> None:
        seconds = spec.sampling.longest_window_seconds
        self.by_family: dict[str, Window] = defaultdict(lambda: Window(seconds))
        self.by_sensor: dict[str, Window] = defaultdict(lambda: Window(seconds))
        self.masks = Window(seconds)
        self.settled = SettledMemory(spec.memory_settled)
        self.memory = memory.Source()

    def samples(self, gpu: Gpu, since: float, now: float) -> list[Sample]:
        """min, mean, max, last of each window; a window with no reading has no series."""
        found = []
        for family, window in list(self.by_family.items()):
            if stats := window.stats(since):
                found += [gpu.sample(family, value, stat=stat) for stat, value in stats.items()]
        for sensor, window in list(self.by_sensor.items()):
            if stats := window.stats(since):
                found += [
                    gpu.sample(names.GPU_TEMPERATURE_CELSIUS, value, sensor=sensor, stat=stat)
                    for stat, value in stats.items()
                ]
        found += clocks.event_samples(gpu, self.masks.values(since))
        used = self.by_family.get(names.GPU_MEMORY_USED_BYTES)
        if used is None or not used.fresh(now):
            return found
        found.append(gpu.sample(names.GPU_MEMORY_SETTLED, float(self.settled.now)))
        if self.settled.bytes is not None:
            found.append(gpu.sample(names.GPU_MEMORY_SETTLED_BYTES, self.settled.bytes))
        return found


def sample(gpu: Gpu, windows: GpuWindows, now: float) -> None:
    """Take one reading of everything that is sampled; raises GpuLost, DriverGone."""
    for family, value in utilisation.read(gpu):
        windows.by_family[family].add(now, value)
    if (used := windows.memory.used(gpu)) is not None:
        windows.by_family[names.GPU_MEMORY_USED_BYTES].add(now, used)
        windows.settled.add(used)
    if (watts := gpu.ask.number("milliwatts", "nvmlDeviceGetPowerUsage")) is not None:
        windows.by_family[POWER].add(now, watts / 1000)
    if (clock := gpu.ask.number("megahertz", "nvmlDeviceGetClockInfo", _SM)) is not None:
        windows.by_family[SM_CLOCK].add(now, clock * 1e6)
    mask = gpu.ask.value("nvmlDeviceGetCurrentClocksEventReasons")
    if mask is None:
        mask = gpu.ask.value("nvmlDeviceGetCurrentClocksThrottleReasons")
    if mask is not None and (known := plausible("mask", mask, gpu.ask.faults)) is not None:
        windows.masks.add(now, known)
