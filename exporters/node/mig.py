"""MIG instances of a GPU: memory each, and activity through GPM where the chip has it."""

import logging
from collections.abc import Iterator
from typing import Any

from exporters.node.ask import plausible
from exporters.node.gpus import Gpu
from exporters.node.nvml import NOT_FOUND, GpmSource, NvmlError, member, text
from exporters.node.samples import Sample
from slo.names import node as names

log = logging.getLogger(__name__)

_ACTIVITY = {
    2: names.GPU_MIG_SM_ACTIVE_RATIO,
    5: names.GPU_MIG_TENSOR_ACTIVE_RATIO,
    10: names.GPU_MIG_DRAM_BANDWIDTH_RATIO,
}


def enabled(gpu: Gpu) -> bool:
    """Whether MIG is on; False also where the GPU has no MIG."""
    mode = gpu.ask.value("nvmlDeviceGetMigMode")
    return bool(mode and mode[0])


class Instances:
    """The MIG instances of one GPU, with a GPM source each while the chip offers one."""

    def __init__(self) -> None:
        self._gpm: dict[int, GpmSource | None] = {}

    def collect(self, gpu: Gpu) -> Iterator[Sample]:
        """Whether MIG is on, and each instance's memory and activity."""
        mode = gpu.ask.value("nvmlDeviceGetMigMode")
        if mode is None:
            return
        yield gpu.sample(names.GPU_MIG_ENABLED, float(mode[0]))
        if not mode[0]:
            return
        for slot in range(int(gpu.ask.value("nvmlDeviceGetMaxMigDeviceCount") or 0)):
            handle = self._handle(gpu, slot)
            if handle is not None:
                yield from self._instance(gpu, handle)

    @staticmethod
    def _handle(gpu: Gpu, slot: int) -> Any | None:
        """The instance in that slot; an empty slot is no fault and is asked again."""
        try:
            return gpu.ask.nvml.call("nvmlDeviceGetMigDeviceHandleByIndex", gpu.handle, slot)
        except NvmlError as error:
            if error.code != NOT_FOUND:
                gpu.ask.judge(error, "nvmlDeviceGetMigDeviceHandleByIndex", ("mig", slot))
            return None

    def _instance(self, gpu: Gpu, handle: Any) -> Iterator[Sample]:
        call = gpu.ask.nvml.call
        try:
            uuid = text(call("nvmlDeviceGetUUID", handle))
            profile = text(call("nvmlDeviceGetName", handle)).rpartition("MIG ")[2]
            number = int(call("nvmlDeviceGetGpuInstanceId", handle))
            memory = call("nvmlDeviceGetMemoryInfo", handle)
        except NvmlError as error:
            gpu.ask.judge(error, "MIG instance", ("mig", "instance"))
            return
        labels = {"mig_uuid": uuid, "profile": profile, "gpu_instance": str(number)}
        for name, family in (
            ("total", names.GPU_MIG_MEMORY_TOTAL_BYTES),
            ("used", names.GPU_MIG_MEMORY_USED_BYTES),
        ):
            size = plausible("bytes", member(memory, name), gpu.ask.faults)
            if size is not None:
                yield gpu.sample(family, size, **labels)
        for metric, percent in self._activity(gpu, number).items():
            ratio = plausible("percent", percent, gpu.ask.faults)
            if ratio is not None:
                yield gpu.sample(_ACTIVITY[metric], ratio / 100, **labels)

    def _activity(self, gpu: Gpu, number: int) -> dict[int, float]:
        try:
            if number not in self._gpm:
                self._gpm[number] = gpu.ask.nvml.gpm(gpu.handle, number)
            source = self._gpm[number]
            return {} if source is None else source.read(tuple(_ACTIVITY))
        except NvmlError as error:
            log.info("no GPM of MIG instance %d of GPU %s: %s", number, gpu.uuid, error)
            self._gpm[number] = None
            return {}
