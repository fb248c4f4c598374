"""/proc of the host -> pressure, busy CPUs, memory."""

from collections.abc import Iterator
from pathlib import Path

from exporters.node import procfs
from exporters.node.cgroups import RESOURCES
from exporters.node.samples import Sample, label_text
from slo.names import node as names


def memory(proc_root: Path) -> dict[str, float]:
    """total and available bytes of the host; empty when not told."""
    return procfs.parse_meminfo(procfs.read(proc_root / "meminfo") or "")


def online_cpus(sys_root: Path, cpu_busy: dict[int | None, float]) -> frozenset[int]:
    """The CPUs that are online, by sysfs, else by /proc/stat."""
    listed = procfs.parse_cpu_list(procfs.read(sys_root / "devices/system/cpu/online") or "")
    return listed or frozenset(cpu for cpu in cpu_busy if cpu is not None)


def samples(proc_root: Path, online: frozenset[int], cpu_busy: dict[int | None, float]) -> Iterator[Sample]:
    """Pressure in total seconds: what share of a window was lost is rate()'s to say."""
    readable = False
    for resource in RESOURCES:
        pressure = procfs.parse_pressure(procfs.read(proc_root / "pressure" / resource) or "")
        readable = readable or bool(pressure)
        for share, seconds in pressure.items():
            labels = label_text(resource=resource, share=share)
            yield Sample(names.HOST_PRESSURE_SECONDS_TOTAL, labels, seconds)
    yield Sample(names.HOST_PRESSURE_READABLE, "", float(readable))
    if online:
        yield Sample(names.HOST_CPUS, "", len(online))
    if None in cpu_busy:
        yield Sample(names.HOST_CPU_BUSY_SECONDS_TOTAL, "", cpu_busy[None])
    found = memory(proc_root)
    if found:
        yield Sample(names.HOST_MEMORY_TOTAL_BYTES, "", found["total"])
        yield Sample(names.HOST_MEMORY_AVAILABLE_BYTES, "", found["available"])
