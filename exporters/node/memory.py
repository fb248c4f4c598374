"""Memory of a GPU: used and reserved apart where the driver can tell, unified memory marked as such."""

from collections.abc import Iterator
from typing import Any

from exporters.node.ask import plausible
from exporters.node.gpus import Gpu
from exporters.node.nvml import MEMORY_INFO_V2, member
from exporters.node.samples import Sample
from slo.names import node as names

_V2 = ("nvmlDeviceGetMemoryInfo", (MEMORY_INFO_V2,))
_V1 = ("nvmlDeviceGetMemoryInfo", ())


class Source:
    """Which of NVML's two memory calls this GPU answers, and what the last answer was.

    The sampler writes, the slow round reads: each attribute is replaced whole.
    """

    def __init__(self) -> None:
        self.last: dict[str, float] = {}
        self.includes_reserved = False
        self.none_of_its_own = False

    def used(self, gpu: Gpu) -> float | None:
        """Bytes in use; None where they cannot be read. Raises GpuLost, DriverGone."""
        for call, args in (_V2, _V1):
            info = gpu.ask.value(call, *args)
            if info is not None:
                numbers = self._numbers(gpu, info)
                self.includes_reserved = args == ()
                self.last = numbers
                # A GPU without memory of its own may answer zeros instead of Not Supported.
                self.none_of_its_own = numbers.get("total") == 0
                return None if self.none_of_its_own else numbers.get("used")
        self.last = {}
        self.none_of_its_own = {_V1, _V2} <= gpu.ask.unsupported
        return None

    @staticmethod
    def _numbers(gpu: Gpu, info: Any) -> dict[str, float]:
        known = info if isinstance(info, dict) else {k: member(info, k) for k, *_ in info._fields_}
        return {
            key: number
            for key in ("total", "reserved", "free", "used")
            if key in known and (number := plausible("bytes", known[key], gpu.ask.faults)) is not None
        }


def collect(gpu: Gpu, source: Source, mig: bool, host_memory: dict[str, float]) -> Iterator[Sample]:
    """Totals, reserved, BAR1; on a unified-memory machine the host's figures under an explicit mark."""
    unified = source.none_of_its_own and not mig
    yield gpu.sample(names.GPU_MEMORY_UNIFIED, float(unified))
    last = {} if unified else source.last
    if unified and host_memory:
        total, available = host_memory["total"], host_memory["available"]
        yield gpu.sample(names.GPU_MEMORY_TOTAL_BYTES, total)
        yield gpu.sample(names.GPU_MEMORY_FREE_BYTES, available)
        yield gpu.sample(names.GPU_MEMORY_USED_BYTES, total - available, stat="last")
    if last:
        yield gpu.sample(names.GPU_MEMORY_USED_INCLUDES_RESERVED, float(source.includes_reserved))
    for key, family in (
        ("total", names.GPU_MEMORY_TOTAL_BYTES),
        ("free", names.GPU_MEMORY_FREE_BYTES),
        ("reserved", names.GPU_MEMORY_RESERVED_BYTES),
    ):
        if key in last:
            yield gpu.sample(family, last[key])
    yield from _bar1(gpu)


def _bar1(gpu: Gpu) -> Iterator[Sample]:
    info = gpu.ask.value("nvmlDeviceGetBAR1MemoryInfo")
    if info is None:
        return
    for name, family in (
        ("bar1Used", names.GPU_BAR1_USED_BYTES),
        ("bar1Total", names.GPU_BAR1_TOTAL_BYTES),
    ):
        number = plausible("bytes", member(info, name), gpu.ask.faults)
        if number is not None:
            yield gpu.sample(family, number)
