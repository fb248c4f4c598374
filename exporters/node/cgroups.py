"""cgroup v2 of engines and tenants -> memory, CPU and pressure; a v1 machine is a state, not a fault."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from exporters.node import procfs
from exporters.node.config import TenantEntry
from exporters.node.samples import Sample, joined, label_text, state_set
from slo.names import node as names

_CONTAINER = re.compile(r"(?:^|[-/])([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?$")
_EVENTS = ("low", "high", "max", "oom", "oom_kill")
_CPU_MODES = {"usage_usec": "total", "user_usec": "user", "system_usec": "system"}
_THROTTLING = {
    "nr_periods": (names.CGROUP_CPU_PERIODS_TOTAL, 1),
    "nr_throttled": (names.CGROUP_CPU_THROTTLED_PERIODS_TOTAL, 1),
    "throttled_usec": (names.CGROUP_CPU_THROTTLED_SECONDS_TOTAL, 1_000_000),
}
RESOURCES = ("cpu", "memory", "io")


def root(sys_root: Path) -> tuple[str, Path | None]:
    """(state, where v2 is mounted): a v2 machine, a hybrid one with v2 beside v1, v1 only, or none."""
    base = sys_root / "fs/cgroup"
    if (base / "cgroup.controllers").exists():
        return "v2", base
    if (base / "unified" / "cgroup.controllers").exists():
        return "hybrid", base / "unified"
    if any((base / name).is_dir() for name in ("memory", "cpu", "cpuacct", "cpu,cpuacct")):
        return "v1", None
    return "absent", None


def tenant_of(path: str) -> str:
    """A short name: the container's first 12 digits, else the last part of the path."""
    container = _CONTAINER.search(path)
    if container:
        return container.group(1)
    return path.rstrip("/").rpartition("/")[2] or "/"


def watched(mount: Path, paths: Iterable[str], tenants: Iterable[TenantEntry]) -> dict[str, str]:
    """cgroup path -> tenant: the engines' own and what the configuration names."""
    found = {path: tenant_of(path) for path in paths}
    for entry in tenants:
        pattern = entry.cgroup.strip("/")
        # glob() takes no empty pattern; "/" is the root itself.
        for directory in sorted(mount.glob(pattern)) if pattern else [mount]:
            if directory.is_dir():
                found["/" + "/".join(directory.relative_to(mount).parts)] = entry.tenant
    return found


def samples(mount: Path, path: str, tenant: str, node: str) -> Iterator[Sample]:
    """Everything of one cgroup whose file exists; a controller that is off has no series."""
    directory = mount / path.strip("/")
    base = label_text(tenant=tenant, cgroup=path, node=node)
    yield from _memory(directory, base)
    yield from _cpu(directory, base)
    for resource in RESOURCES:
        pressure = procfs.parse_pressure(procfs.read(directory / f"{resource}.pressure") or "")
        for share, seconds in pressure.items():
            labels = joined(base, label_text(resource=resource, share=share))
            yield Sample(names.CGROUP_PRESSURE_SECONDS_TOTAL, labels, seconds)


def _memory(directory: Path, base: str) -> Iterator[Sample]:
    current = (procfs.read(directory / "memory.current") or "").strip()
    if current.isdecimal():
        yield Sample(names.CGROUP_MEMORY_BYTES, base, int(current))
    for limit in ("max", "high"):
        text = (procfs.read(directory / f"memory.{limit}") or "").strip()
        if text.isdecimal():
            yield Sample(names.CGROUP_MEMORY_LIMIT_BYTES, joined(base, label_text(limit=limit)), int(text))
    events = procfs.parse_flat(procfs.read(directory / "memory.events") or "")
    for event in _EVENTS:
        if event in events:
            labels = joined(base, label_text(event=event))
            yield Sample(names.CGROUP_MEMORY_EVENTS_TOTAL, labels, events[event])


def _cpu(directory: Path, base: str) -> Iterator[Sample]:
    numbers = procfs.parse_flat(procfs.read(directory / "cpu.stat") or "")
    for key, mode in _CPU_MODES.items():
        if key in numbers:
            labels = joined(base, label_text(mode=mode))
            yield Sample(names.CGROUP_CPU_SECONDS_TOTAL, labels, numbers[key] / 1_000_000)
    for key, (family, divisor) in _THROTTLING.items():
        if key in numbers:
            yield Sample(family, base, numbers[key] / divisor)
    quota = (procfs.read(directory / "cpu.max") or "").split()
    if len(quota) == 2 and quota[0].isdecimal() and quota[1].isdecimal() and int(quota[1]):
        yield Sample(names.CGROUP_CPU_LIMIT_CORES, base, int(quota[0]) / int(quota[1]))


def state_samples(state: str) -> list[Sample]:
    """What this machine's cgroups are."""
    return state_set(names.CGROUP_STATE, names.CGROUP_STATES, state)
