"""Clocks, and why they are held: one series a reason, as a share of samples and by the driver's count."""

from collections import Counter
from collections.abc import Iterator, Sequence

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names

# Bits of nvmlDeviceGetCurrentClocksEventReasons. Idle, application clocks and display are no throttling.
REASONS = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clock_setting": 0x100,
}
THERMAL = ("sw_thermal_slowdown", "hw_thermal_slowdown")
POWER_BRAKE = ("hw_slowdown", "hw_power_brake_slowdown")
POWER_CAP = ("sw_power_cap",)

# Field values that count nanoseconds.
_HELD = {
    74: "sw_power_cap",
    76: "sync_boost",
    269: "sw_thermal_slowdown",
    270: "hw_thermal_slowdown",
    271: "hw_power_brake_slowdown",
}
_CLOCKS = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}


def event_samples(gpu: Gpu, masks: Sequence[float]) -> Iterator[Sample]:
    """The share of the masks in which each reason's bit is set; nothing when there is no mask."""
    if not masks:
        return
    seen = Counter(masks)
    for reason, bit in REASONS.items():
        held = sum(count for mask, count in seen.items() if int(mask) & bit)
        yield gpu.sample(names.GPU_CLOCK_EVENT_RATIO, held / len(masks), reason=reason)


def collect(gpu: Gpu) -> Iterator[Sample]:
    """Clocks in use and at most, and the driver's count of time held."""
    for clock, number in _CLOCKS.items():
        for megahertz, family in (
            (gpu.ask.number("megahertz", "nvmlDeviceGetClockInfo", number), names.GPU_CLOCK_HERTZ),
            (gpu.ask.constant("megahertz", "nvmlDeviceGetMaxClockInfo", number), names.GPU_CLOCK_MAX_HERTZ),
        ):
            if megahertz is not None:
                yield gpu.sample(family, megahertz * 1e6, clock=clock)
    for number, nanoseconds in gpu.ask.fields("count", tuple(_HELD)).items():
        yield gpu.sample(names.GPU_CLOCK_EVENT_SECONDS_TOTAL, nanoseconds / 1e9, reason=_HELD[number])
