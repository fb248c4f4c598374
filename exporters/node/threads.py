"""The engine core's threads -> busy, wall, on-mask and run-queue time, migrations, context switches."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from exporters.node import procfs
from exporters.node.engines import Core
from exporters.node.samples import Sample, joined, label_text
from slo.names import node as names

_SWITCHES = {"voluntary_ctxt_switches": "voluntary", "nonvoluntary_ctxt_switches": "involuntary"}

MOST_NAMES = 63
OTHER = "other"
"""All threads whose names came after the first MOST_NAMES: some libraries number theirs without end."""


@dataclass(frozen=True)
class _Reading:
    at: float
    busy: float
    processor: int
    waited: float | None
    bound_cpus_busy: float | None
    migrations: int | None


@dataclass
class CoreThread:
    """The main thread of one engine core, which runs its loop.

    Binding is busy over wall: one thread can fill one core, so wall time counts once, whether it is
    bound to one core, to several, or to none (then: the core it ran on). `bound_cpus` tells how many.
    """

    core: Core
    labels: str
    bound: frozenset[int] = frozenset()
    processor: int = -1
    resident_bytes: int = 0
    wall: float = 0.0
    busy: float = 0.0
    on_mask: float = 0.0
    waited: float | None = None
    bound_cpus_busy: float = 0.0
    migrations: int = 0
    switches: dict[str, int] = field(default_factory=dict)
    threads: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _last: _Reading | None = None
    _thread_last: dict[int, float] = field(default_factory=dict)

    def read(
        self, proc_root: Path, now: float, online: frozenset[int], cpu_busy: Mapping[int | None, float]
    ) -> None:
        """Take the next reading at `now` (monotonic seconds); a process that ended adds nothing."""
        task = proc_root / str(self.core.pid) / "task" / str(self.core.pid)
        stat = procfs.stat(task / "stat")
        status = procfs.parse_status(procfs.read(task / "status") or "")
        if stat is None or stat.start_ticks != self.core.start_ticks or not status:
            self._last = None
            return
        scheduled = procfs.parse_schedstat(procfs.read(task / "schedstat") or "")
        self.resident_bytes = stat.resident_bytes or self.resident_bytes
        self.switches = {k: int(status[n]) for n, k in _SWITCHES.items() if status.get(n, "").isdecimal()}
        allowed = procfs.parse_cpu_list(status.get("Cpus_allowed_list", ""))
        wanted = procfs.parse_cpu_list(self.core.cpus) or allowed
        self.bound = frozenset() if online <= wanted else wanted
        reading = _Reading(
            at=now,
            busy=scheduled[0] if scheduled and scheduled[0] > 0 else stat.cpu_seconds,
            processor=stat.processor,
            waited=scheduled[1] if scheduled and scheduled[0] > 0 else None,
            bound_cpus_busy=_sum_of(cpu_busy, self.bound),
            migrations=procfs.parse_migrations(procfs.read(task / "sched") or ""),
        )
        self._add(reading, wanted)

    def _add(self, now: _Reading, wanted: frozenset[int]) -> None:
        last, self._last = self._last, now
        self.processor = now.processor
        if last is None or now.at <= last.at:
            return
        wall = now.at - last.at
        busy = min(max(now.busy - last.busy, 0.0), wall)
        self.wall += wall
        self.busy += busy
        # Run time between two looks belongs half to where it was seen before and half to where it is now.
        for processor in (last.processor, now.processor):
            self.on_mask += busy / 2 if processor in wanted else 0.0
        if now.migrations is not None and last.migrations is not None:
            self.migrations += max(now.migrations - last.migrations, 0)
        else:  # without the scheduler's count, moves between two looks that end where they began are missed
            self.migrations += int(last.processor != now.processor)
        if now.waited is not None and last.waited is not None:
            self.waited = (self.waited or 0.0) + max(now.waited - last.waited, 0.0)
        if now.bound_cpus_busy is not None and last.bound_cpus_busy is not None:
            self.bound_cpus_busy += max(now.bound_cpus_busy - last.bound_cpus_busy, 0.0)

    def read_all(self, proc_root: Path) -> None:
        """Add up what every thread of the process used since the last look, by thread name."""
        current: dict[int, float] = {}
        tasks = proc_root / str(self.core.pid) / "task"
        for path in sorted(tasks.glob("[0-9]*")):
            stat = procfs.stat(path / "stat")
            if stat is None:
                continue
            tid = int(path.name)
            current[tid] = stat.cpu_seconds
            used = stat.cpu_seconds - self._thread_last.get(tid, 0.0)
            name = "main" if tid == self.core.pid else stat.name
            if name not in self.threads and len(self.threads) >= MOST_NAMES:
                name = OTHER
            self.threads[name] += max(used, 0.0)
        self._thread_last = current

    def samples(self, numa: Mapping[int, int]) -> Iterator[Sample]:
        """Counters since the agent first saw the core, and where it is now."""
        yield Sample(
            names.ENGINE_CORE_STATE,
            joined(self.labels, label_text(model=self.core.model, pid=str(self.core.pid))),
            1,
        )
        for family, value in (
            (names.ENGINE_CORE_BUSY_SECONDS_TOTAL, self.busy),
            (names.ENGINE_CORE_WALL_SECONDS_TOTAL, self.wall),
            (names.ENGINE_CORE_ON_MASK_SECONDS_TOTAL, self.on_mask),
            (names.ENGINE_CORE_MIGRATIONS_TOTAL, self.migrations),
            (names.ENGINE_CORE_BOUND_CPUS, len(self.bound)),
            (names.ENGINE_CORE_RESIDENT_BYTES, self.resident_bytes),
        ):
            yield Sample(family, self.labels, value)
        if self.waited is not None:
            yield Sample(names.ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL, self.labels, self.waited)
        if self.bound:
            yield Sample(names.ENGINE_CORE_BOUND_CPUS_BUSY_SECONDS_TOTAL, self.labels, self.bound_cpus_busy)
        if self.processor in numa:
            yield Sample(names.ENGINE_CORE_NUMA_NODE, self.labels, numa[self.processor])
        for kind, count in self.switches.items():
            labels = joined(self.labels, label_text(kind=kind))
            yield Sample(names.ENGINE_CORE_CONTEXT_SWITCHES_TOTAL, labels, count)
        for thread, seconds in sorted(self.threads.items()):
            labels = joined(self.labels, label_text(thread=thread))
            yield Sample(names.ENGINE_THREAD_CPU_SECONDS_TOTAL, labels, seconds)


def _sum_of(cpu_busy: Mapping[int | None, float], cpus: frozenset[int]) -> float | None:
    """Busy seconds of these CPUs; None unless all are known."""
    return sum(cpu_busy[cpu] for cpu in cpus) if cpus and cpus <= cpu_busy.keys() else None
