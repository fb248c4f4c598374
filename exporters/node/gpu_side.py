"""Everything that NVML tells, on three cadences and an event wait, kept until a scrape asks."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from exporters.node import (
    bound,
    clocks,
    ecc,
    memory,
    mig,
    nvlink,
    pcie,
    power,
    processes,
    procfs,
    sampler,
    thermal,
)
from exporters.node import utilisation as utilisation_source
from exporters.node.ask import DriverGone, Faults, GpuLost
from exporters.node.gate import Gate
from exporters.node.gpm import Gpm
from exporters.node.gpus import Fleet, Gpu
from exporters.node.nvml import EventSource, NvmlError
from exporters.node.processes import GpuProcess, Owner
from exporters.node.samples import Sample, joined, label_text
from exporters.node.xid import XidCounts
from slo.names import node as names
from slo.node import Node

log = logging.getLogger(__name__)

_EVENT_WAIT_MILLISECONDS = 500
_REOPEN_AT_MOST_SECONDS = 300.0
_STALE_AFTER = 6  # cadences without a reading after which the last one is not served any more

# Sources that need nothing but the GPU, read on the slow cadence.
SLOW: tuple[Callable[[Gpu], Iterator[Sample]], ...] = (
    utilisation_source.collect,
    power.collect,
    thermal.collect,
    clocks.collect,
    pcie.collect,
    nvlink.collect,
    ecc.collect,
)


@dataclass
class _Kept:
    """What is known of one GPU between scrapes; made anew when the GPU comes back."""

    windows: sampler.GpuWindows
    gpm: Gpm
    instances: mig.Instances = field(default_factory=mig.Instances)
    mig_on: bool = False
    slow: list[Sample] = field(default_factory=list)
    slow_at: float = float("-inf")
    pcie: list[Sample] = field(default_factory=list)
    processes: list[GpuProcess] | None = None
    processes_at: float = float("-inf")


class GpuSide:
    """The GPUs of a node. Each method named *_round is one cadence's work, in a thread of its own."""

    def __init__(self, fleet: Fleet, faults: Faults, spec: Node, proc_root: Path, sys_root: Path) -> None:
        self.fleet, self.faults, self.spec = fleet, faults, spec
        self.xids = XidCounts()
        self._proc_root, self._sys_root = proc_root, sys_root
        self._gate = Gate()
        self._kept: dict[str, _Kept] = {}
        self._events: EventSource | None = None
        self._events_generation = -1
        self._reopen_at, self._reopen_wait = 0.0, 0.0

    def _keeping(self, gpu: Gpu) -> _Kept:
        if gpu.uuid not in self._kept:
            seconds = self.spec.sampling.longest_window_seconds
            self._kept[gpu.uuid] = _Kept(sampler.GpuWindows(self.spec), Gpm(seconds))
        return self._kept[gpu.uuid]

    def _each(self, work: Callable[[Gpu, _Kept], None]) -> None:
        """Do `work` for each GPU that answers; one that is lost costs only itself."""
        with self._gate.shared():
            for gpu in self.fleet.up:
                try:
                    work(gpu, self._keeping(gpu))
                except GpuLost as error:
                    self.fleet.mark_lost(gpu, error)
                    self._kept.pop(gpu.uuid, None)
                except DriverGone as error:
                    self.fleet.mark_driver_gone(str(error))
                    self._kept.clear()
                    return

    def sampler_round(self, now: float) -> None:
        """The 100 ms readings."""
        self._each(lambda gpu, kept: sampler.sample(gpu, kept.windows, now))

    def gpm_round(self, now: float) -> None:
        """GPM and temperatures."""

        def work(gpu: Gpu, kept: _Kept) -> None:
            for sensor, celsius in thermal.read(gpu):
                kept.windows.by_sensor[sensor].add(now, celsius)
            kept.gpm.read(gpu, now)

        self._each(work)

    def process_round(self, now: float) -> None:
        """Who has a context on which GPU."""

        def work(gpu: Gpu, kept: _Kept) -> None:
            kept.processes, kept.processes_at = processes.read(gpu), now

        self._each(work)

    def slow_round(self, now: float) -> None:
        """Everything that is slow or seldom changes; opens NVML again when something is wrong."""
        self._reopen_if_needed(now)
        host_memory = procfs.parse_meminfo(procfs.read(self._proc_root / "meminfo") or "")

        def work(gpu: Gpu, kept: _Kept) -> None:
            kept.mig_on = mig.enabled(gpu)
            found = [s for source in SLOW for s in source(gpu)]
            found += kept.instances.collect(gpu)
            found += memory.collect(gpu, kept.windows.memory, kept.mig_on, host_memory)
            kept.pcie = list(pcie.throughput(gpu)) if kept.gpm.state != "supported" else []
            numa = procfs.numa_of_pci(self._sys_root, gpu.pci_bus_id)
            if numa is not None:
                found.append(gpu.sample(names.GPU_NUMA_NODE, numa))
            kept.slow, kept.slow_at = found, now

        self._each(work)

    def _reopen_if_needed(self, now: float) -> None:
        """Open at first; afterwards close and open when the state is not ok, ever more seldom."""
        if self.fleet.state == names.STATE_OK and not self._count_changed():
            self._reopen_wait = 0.0
            return
        if now < self._reopen_at:
            return
        with self._gate.exclusive():
            self._close_events()
            self.fleet.close()
            self.fleet.open()
            for uuid in list(self._kept):
                if not self.fleet.gpus[uuid].up:
                    del self._kept[uuid]
                else:
                    self._kept[uuid].gpm = Gpm(self.spec.sampling.longest_window_seconds)
                    self._kept[uuid].instances = mig.Instances()
        base = self.spec.sampling.slow_seconds
        self._reopen_wait = min(max(base, self._reopen_wait * 2), _REOPEN_AT_MOST_SECONDS)
        self._reopen_at = now + self._reopen_wait

    def _count_changed(self) -> bool:
        try:
            with self._gate.shared():
                return int(self.fleet.nvml.call("nvmlDeviceGetCount")) != len(self.fleet.up)
        except NvmlError as error:
            log.warning("NVML no longer counts its devices: %s", error)
            return True

    def event_round(self, now: float) -> None:
        """Wait for XID events; registers again after NVML was opened again."""
        with self._gate.shared():
            if not self.fleet.up:
                return
            if self._events_generation != self.fleet.generation:
                self._events_generation = self.fleet.generation
                handles = [gpu.handle for gpu in self.fleet.up]
                self._events, self.xids.watched = self.fleet.nvml.events(handles)
            if self._events is None or not self.xids.watched:
                return
            try:
                event = self._events.wait(_EVENT_WAIT_MILLISECONDS)
            except NvmlError as error:
                log.warning("XID events cannot be waited for: %s", error)
                self._close_events()
                return
            if event is not None:
                log.error("XID %d on GPU %s", event[1], event[0])
                self.xids.add(*event)

    def _close_events(self) -> None:
        if self._events is not None:
            try:
                self._events.close()
            except NvmlError as error:
                log.info("event set not freed: %s", error)
        self._events, self._events_generation, self.xids.watched = None, -1, 0

    @property
    def pids_by_uuid(self) -> dict[str, list[int]]:
        """GPU -> pids with a context on it."""
        return {
            uuid: [p.pid for p in kept.processes] for uuid, kept in list(self._kept.items()) if kept.processes
        }

    def samples(self, node: str, since: float, now: float, owner: Callable[[int], Owner]) -> Iterator[Sample]:
        """Everything that is known now; nothing is read. Readings that stopped coming are not served."""
        yield from self.fleet.samples(node)
        yield Sample(names.GPU_XID_WATCHED, "", self.xids.watched)
        for gpu in list(self.fleet.gpus.values()):
            yield from self.xids.samples(gpu)
            kept = self._kept.get(gpu.uuid)
            if kept is not None and gpu.up:
                yield from self._gpu_samples(gpu, kept, since, now, owner)
        yield from self._fault_samples()

    def _gpu_samples(
        self, gpu: Gpu, kept: _Kept, since: float, now: float, owner: Callable[[int], Owner]
    ) -> Iterable[Sample]:
        yield from kept.windows.samples(gpu, since, now)
        yield from kept.gpm.samples(gpu, since, now)
        if not kept.mig_on:
            yield from bound.samples(gpu, kept.gpm.means(since), self.spec.bound)
        every = self.spec.sampling
        if kept.processes is not None and now - kept.processes_at <= _STALE_AFTER * every.process_seconds:
            yield from processes.samples(gpu, kept.processes, owner)
        if now - kept.slow_at <= _STALE_AFTER * every.slow_seconds:
            yield from kept.slow
            # Asked for before GPM's first reading, which tells the same by the same names.
            if kept.gpm.state != "supported":
                yield from kept.pcie

    def _fault_samples(self) -> Iterator[Sample]:
        with self.faults.lock:
            dropped, errors = dict(self.faults.dropped), dict(self.faults.errors)
        for quantity, count in sorted(dropped.items()):
            yield Sample(names.DROPPED_READINGS_TOTAL, label_text(quantity=quantity), count)
        for (labels, call, error), count in sorted(errors.items()):
            text = joined(labels, label_text(call=call, error=error))
            yield Sample(names.GPU_READ_ERRORS_TOTAL, text, count)

    def close(self) -> None:
        """Let go of NVML."""
        with self._gate.exclusive():
            self._close_events()
            self.fleet.close()
