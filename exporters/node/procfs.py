"""Files of /proc and /sys under a configurable root -> numbers; every parse function is pure."""

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
NANOSECONDS = 1_000_000_000


def read(path: Path) -> str | None:
    """The file's text; None when it is not there, not ours to read, or its process ended."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


@dataclass(frozen=True)
class Stat:
    """Of /proc/PID/stat or a task's: times in seconds since boot or of CPU."""

    name: str
    parent: int
    cpu_seconds: float
    start_ticks: int
    resident_bytes: int
    processor: int


def parse_stat(text: str) -> Stat:
    """A stat line; the name may hold spaces and brackets. Raises ValueError, IndexError."""
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    return Stat(
        name=head.partition("(")[2],
        parent=int(fields[1]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND,
        start_ticks=int(fields[19]),
        resident_bytes=int(fields[21]) * PAGE_BYTES,
        processor=int(fields[36]),
    )


def stat(path: Path) -> Stat | None:
    """A stat file; None when it cannot be read or is cut off."""
    text = read(path)
    if not text:
        return None
    try:
        return parse_stat(text)
    except (ValueError, IndexError):
        return None


def parse_schedstat(text: str) -> tuple[float, float] | None:
    """(seconds on a CPU, seconds runnable and waiting); None where the kernel does not count."""
    fields = text.split()
    if len(fields) < 2 or not all(f.isdecimal() for f in fields[:2]):
        return None
    return int(fields[0]) / NANOSECONDS, int(fields[1]) / NANOSECONDS


def parse_migrations(text: str) -> int | None:
    """Moves to another CPU, of /proc/PID/sched; None where the kernel does not write that file."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "se.nr_migrations" and value.strip().isdecimal():
            return int(value)
    return None


def parse_status(text: str) -> dict[str, str]:
    """Key -> value of /proc/PID/status."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {key: value.strip() for key, colon, value in pairs if colon}


def parse_cpu_list(text: str) -> frozenset[int]:
    """`0-2,5` -> {0, 1, 2, 5}; an empty or broken list is empty."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, dash, last = part.partition("-")
        if first.isdecimal() and (last.isdecimal() if dash else True):
            cpus.update(range(int(first), int(last if dash else first) + 1))
    return frozenset(cpus)


def parse_meminfo(text: str) -> dict[str, float]:
    """total and available in bytes; empty unless both stand there."""
    found = {}
    for line in text.splitlines():
        key, _, rest = line.partition(":")
        name = {"MemTotal": "total", "MemAvailable": "available"}.get(key)
        if name and rest.split()[:1] and rest.split()[0].isdecimal():
            found[name] = float(rest.split()[0]) * 1024
    return found if len(found) == 2 else {}


def parse_cpu_busy(text: str) -> dict[int | None, float]:
    """CPU (None: all) -> busy seconds since boot, of /proc/stat; idle, iowait and guest are not counted."""
    busy: dict[int | None, float] = {}
    for line in text.splitlines():
        name, *fields = line.split() or [""]
        if not name.startswith("cpu") or len(fields) < 8:
            continue
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(f) for f in fields[:8])
        number = int(name[3:]) if name[3:].isdecimal() else None
        busy[number] = (user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND
    return busy


def parse_pressure(text: str) -> dict[str, float]:
    """some and full -> seconds in total, of a PSI file."""
    found = {}
    for line in text.splitlines():
        share, *fields = line.split() or [""]
        for item in fields:
            key, _, value = item.partition("=")
            if key == "total" and value.isdecimal():
                found[share] = int(value) / 1_000_000
    return found


def parse_flat(text: str) -> dict[str, int]:
    """`key number` lines of cgroup files."""
    pairs = (line.split() for line in text.splitlines())
    return {p[0]: int(p[1]) for p in pairs if len(p) == 2 and p[1].isdecimal()}


def unified_cgroup(text: str) -> str | None:
    """The cgroup v2 path of /proc/PID/cgroup; None on a machine with v1 only."""
    for line in text.splitlines():
        if line.startswith("0::"):
            return line[3:].removesuffix(" (deleted)")
    return None


def numa_of_cpus(sys_root: Path) -> dict[int, int]:
    """CPU -> NUMA node; empty where the kernel does not tell."""
    nodes: dict[int, int] = {}
    for path in sorted((sys_root / "devices/system/node").glob("node[0-9]*")):
        for cpu in parse_cpu_list(read(path / "cpulist") or ""):
            nodes[cpu] = int(path.name[4:])
    return nodes


def numa_of_pci(sys_root: Path, bus_id: str) -> int | None:
    """The NUMA node of a PCI device; None when unknown (the kernel says -1).

    NVML writes the domain in 8 digits, sysfs in 4.
    """
    domain, _, rest = bus_id.lower().partition(":")
    text = (read(sys_root / "bus/pci/devices" / f"{domain[-4:]}:{rest}" / "numa_node") or "").strip()
    return int(text) if text.isdecimal() else None
