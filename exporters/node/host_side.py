"""Everything that the kernel tells: engines, their core threads, cgroups, pressure."""

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from exporters.node import cgroups, host, procfs
from exporters.node.config import NodeConfig
from exporters.node.engines import Core, Engine, find, gpu_links, visible_uuids
from exporters.node.gpus import Fleet
from exporters.node.processes import Owner
from exporters.node.processtree import ProcessTree
from exporters.node.samples import Sample, label_text
from exporters.node.threads import CoreThread
from slo.names import node as names

log = logging.getLogger(__name__)


class HostSide:
    """Processes and host of a node. Each method named *_round is one cadence's work."""

    def __init__(
        self, config: NodeConfig, fleet: Fleet, pids_by_uuid: Callable[[], Mapping[str, list[int]]]
    ) -> None:
        self._config, self._fleet, self._pids_by_uuid = config, fleet, pids_by_uuid
        self._tree = ProcessTree(config.proc_root)
        self._threads: dict[tuple[int, int], CoreThread] = {}
        self._numa: dict[int, int] = {}
        self._online: frozenset[int] = frozenset()
        self._slow: list[Sample] = []
        self._links: list[tuple[str, str, str]] = []
        self.engines: list[Engine] = []

    def process_round(self, now: float) -> None:
        """Who is an engine, what its threads and cgroups used, how pressed the host is."""
        self._tree.refresh()
        by_uuid = self._pids_by_uuid()
        pids = [pid for pids in by_uuid.values() for pid in pids]
        self.engines = find(self._tree, self._config.file, pids)
        cores = [core for engine in self.engines for core in engine.cores]
        self._watch(cores)
        for thread in list(self._threads.values()):
            thread.read_all(self._config.proc_root)
        environments = {} if by_uuid else {core.pid: self._environment_uuids(core) for core in cores}
        self._links = gpu_links(self.engines, by_uuid, self._config.file, environments)
        busy = self._cpu_busy()
        self._online = host.online_cpus(self._config.sys_root, busy)
        self._numa = procfs.numa_of_cpus(self._config.sys_root)
        self._slow = [*host.samples(self._config.proc_root, self._online, busy), *self._cgroup_samples()]

    def _cpu_busy(self) -> dict[int | None, float]:
        return procfs.parse_cpu_busy(procfs.read(self._config.proc_root / "stat") or "")

    def _watch(self, cores: list[Core]) -> None:
        current = {(core.pid, core.start_ticks): core for core in cores}
        kept = {key: thread for key, thread in self._threads.items() if current.get(key) == thread.core}
        for key, core in current.items():
            if key not in kept:
                labels = label_text(instance=core.instance, dp_rank=core.dp_rank, node=self._config.node)
                kept[key] = CoreThread(core, labels)
                log.info("engine core of %s, rank %s: pid %d", core.instance, core.dp_rank, core.pid)
        self._threads = kept

    def thread_round(self, now: float) -> None:
        """The main thread of each engine core."""
        if not self._threads:
            return
        busy = self._cpu_busy()
        for thread in list(self._threads.values()):
            thread.read(self._config.proc_root, now, self._online, busy)

    def _environment_uuids(self, core: Core) -> list[str]:
        """The GPUs that an engine's environment names, for agents that NVML shows no pids."""
        text = procfs.read(self._config.proc_root / str(core.pid) / "environ") or ""
        pairs = (item.partition("=") for item in text.split("\0"))
        environment = {key: value for key, equals, value in pairs if equals}
        gpus = list(self._fleet.gpus.values())
        by_bus = {gpu.pci_bus_id: gpu.uuid for gpu in gpus}
        # CUDA's order is by bus where all cards are alike.
        alike = len({gpu.model for gpu in gpus}) == 1
        fastest = [by_bus[bus] for bus in sorted(by_bus)] if alike else None
        if "CUDA_VISIBLE_DEVICES" not in environment:
            return []  # without it even the only GPU is a guess: the engine may run on the CPU
        return visible_uuids(environment, by_bus, fastest) or []

    def _cgroup_samples(self) -> Iterator[Sample]:
        state, mount = cgroups.root(self._config.sys_root)
        yield from cgroups.state_samples(state)
        if mount is None:
            return
        paths = []
        for engine in self.engines:
            text = procfs.read(self._config.proc_root / str(engine.pid) / "cgroup") or ""
            path = procfs.unified_cgroup(text)
            if path not in (None, "/"):
                paths.append(path)
        watched = cgroups.watched(mount, paths, self._config.file.tenants)
        for path, tenant in watched.items():
            yield from cgroups.samples(mount, path, tenant, self._config.node)

    def owner(self, pid: int) -> Owner:
        """The process of that pid and the engine it belongs to."""
        process = self._tree.processes.get(pid)
        if process is None:
            return Owner()
        for engine in self.engines:
            if pid in engine.rank_of_pid:
                return Owner(process.name, engine.instance, engine.model)
        return Owner(process.name)

    def samples(self) -> Iterator[Sample]:
        """Everything that is known now; nothing is read."""
        yield from self._slow
        for instance, rank, uuid in self._links:
            labels = label_text(instance=instance, dp_rank=rank, uuid=uuid, node=self._config.node)
            yield Sample(names.ENGINE_GPU_INFO, labels, 1)
        for thread in list(self._threads.values()):
            yield from thread.samples(self._numa)


def default_node_name(proc_root: Path) -> str:
    """The host's name, as the kernel of that /proc knows it."""
    return (procfs.read(proc_root / "sys/kernel/hostname") or "").strip() or "unknown"
