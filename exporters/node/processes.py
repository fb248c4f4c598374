"""Processes on a GPU and their memory, named by engine where the process tree tells it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from exporters.node.ask import RANGES
from exporters.node.gpus import Gpu
from exporters.node.nvml import member
from exporters.node.samples import Sample
from slo.names import node as names

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Owner:
    """Who a pid is; `engine_instance` and `model` are empty for what is no engine."""

    process: str = UNKNOWN
    engine_instance: str = ""
    model: str = ""


@dataclass(frozen=True)
class GpuProcess:
    """A process with a compute context; `memory` is None where NVML does not tell."""

    pid: int
    memory: float | None


def read(gpu: Gpu) -> list[GpuProcess] | None:
    """The compute processes (MPS clients too); None where they cannot be listed."""
    answer = gpu.ask.value("nvmlDeviceGetComputeRunningProcesses")
    if answer is None:
        return None
    clients = gpu.ask.value("nvmlDeviceGetMPSComputeRunningProcesses") or []
    found: dict[int, GpuProcess] = {}
    for process in (*answer, *clients):
        pid = int(member(process, "pid"))
        found[pid] = GpuProcess(pid, _memory(member(process, "usedGpuMemory")))
    return list(found.values())


def _memory(value: object) -> float | None:
    low, high = RANGES["bytes"]
    return float(value) if isinstance(value, int) and low <= value <= high else None


def samples(gpu: Gpu, found: list[GpuProcess], owner: Callable[[int], Owner]) -> Iterator[Sample]:
    """Counts, and the memory of each process that NVML tells; `owner` looks a pid up."""
    yield gpu.sample(names.GPU_PROCESSES, len(found))
    unknown = sum(1 for process in found if process.memory is None)
    yield gpu.sample(names.GPU_PROCESSES_MEMORY_UNKNOWN, unknown)
    for process in found:
        if process.memory is None:
            continue
        who = owner(process.pid)
        yield gpu.sample(
            names.GPU_PROCESS_MEMORY_BYTES,
            process.memory,
            pid=str(process.pid),
            process=who.process,
            engine_instance=who.engine_instance,
            model=who.model,
        )
