"""NVML's devices -> GPUs with an identity, and what state each and the whole is in."""

import logging
from dataclasses import dataclass, field
from typing import Any

from exporters.node.ask import Ask, DriverGone, Faults, GpuLost
from exporters.node.nvml import (
    DRIVER_MISMATCH,
    DRIVER_NOT_LOADED,
    LIBRARY_NOT_FOUND,
    NO_BINDINGS,
    NO_PERMISSION,
    Nvml,
    NvmlError,
    member,
    text,
)
from exporters.node.samples import Sample, joined, label_text, state_set
from slo.names import node as names

log = logging.getLogger(__name__)

_STATE_BY_CODE = {
    NO_BINDINGS: names.STATE_NO_BINDINGS,
    LIBRARY_NOT_FOUND: names.STATE_NO_LIBRARY,
    DRIVER_NOT_LOADED: names.STATE_DRIVER_NOT_LOADED,
    DRIVER_MISMATCH: names.STATE_DRIVER_MISMATCH,
    NO_PERMISSION: names.STATE_NO_PERMISSION,
}
_TEMPERATURE_GPU = 0
_MOST_TEXTS = 1000


@dataclass
class Gpu:
    """One GPU. `up` is False once it was lost; its identity stays."""

    index: int
    uuid: str
    model: str
    pci_bus_id: str
    handle: Any
    ask: Ask
    info: dict[str, str] = field(default_factory=dict)
    up: bool = True
    _texts: dict[tuple[tuple[str, str], ...], str] = field(default_factory=dict, repr=False)

    @property
    def labels(self) -> str:
        """The four identity labels as text."""
        return self.ask.labels

    def sample(self, family: str, value: float, **labels: str) -> Sample:
        """A sample of this GPU."""
        key = tuple(labels.items())
        text = self._texts.get(key)
        if text is None:
            if len(self._texts) > _MOST_TEXTS:  # labels with pids come and go
                self._texts.clear()
            text = self._texts[key] = joined(self.labels, label_text(**labels))
        return Sample(family, text, value)


class Fleet:
    """The GPUs of this node: opened, enumerated, lost and found again."""

    def __init__(self, nvml: Nvml, faults: Faults, expected: int = 0) -> None:
        self.nvml, self.faults = nvml, faults
        self.gpus: dict[str, Gpu] = {}
        self.generation = 0  # goes up when handles are void
        self._configured, self._most_seen = expected, 0
        self._answered = 0
        self._state = names.STATE_ERROR
        self._open = False
        self._driver = ""
        self._library = ""

    @property
    def up(self) -> list[Gpu]:
        """The GPUs that answer."""
        return [gpu for gpu in self.gpus.values() if gpu.up]

    @property
    def expected(self) -> int:
        """GPUs that should be there: as configured, else the most ever counted."""
        return max(self._configured, self._most_seen)

    @property
    def state(self) -> str:
        """One of NVML_STATES."""
        if self._state == names.STATE_OK and len(self.up) < self.expected:
            return names.STATE_LOST
        return self._state

    @property
    def needs_reopening(self) -> bool:
        """Whether NVML must be closed and opened again before anything can be better."""
        return self._open and self.state != names.STATE_OK

    def open(self) -> None:
        """Attach to the driver and list its GPUs; a fault becomes the state, never an exception."""
        try:
            self.nvml.open()
        except NvmlError as error:
            self._fail(error)
            return
        self._open = True
        self.generation += 1
        try:
            self._driver = text(self.nvml.call("nvmlSystemGetDriverVersion"))
            self._library = text(self.nvml.call("nvmlSystemGetNVMLVersion"))
        except NvmlError as error:
            log.info("driver version cannot be read: %s", error)
        self.enumerate()

    def close(self) -> None:
        """Detach; every handle is void afterwards."""
        if not self._open:
            return
        self._open = False
        for gpu in self.gpus.values():
            gpu.up = False
        try:
            self.nvml.close()
        except NvmlError as error:
            log.warning("NVML did not close: %s", error)

    def enumerate(self) -> None:
        """Count the devices and (re)read who they are; lost ones stay with `up` False."""
        try:
            count = int(self.nvml.call("nvmlDeviceGetCount"))
        except NvmlError as error:
            self._fail(error)
            return
        self._most_seen = max(self._most_seen, count)
        self._state = names.STATE_OK if count else names.STATE_NO_DEVICES
        answering: set[str] = set()
        for index in range(count):
            gpu = self._identify(index)
            if gpu is not None:
                answering.add(gpu.uuid)
                self.gpus[gpu.uuid] = gpu
        for uuid, gpu in self.gpus.items():
            gpu.up = gpu.up and uuid in answering

    def _fail(self, error: NvmlError) -> None:
        state = _STATE_BY_CODE.get(error.code, names.STATE_ERROR)
        if state != self._state:
            log.warning("no GPU readings: %s (%s)", error, state)
        self._state = state

    def _identify(self, index: int) -> Gpu | None:
        """The GPU at that index, or None when it does not answer."""
        try:
            handle = self.nvml.call("nvmlDeviceGetHandleByIndex", index)
            uuid = text(self.nvml.call("nvmlDeviceGetUUID", handle))
        except NvmlError as error:
            log.warning("GPU at index %d does not answer: %s", index, error)
            return None
        known = self.gpus.get(uuid)
        model = self._text(handle, "nvmlDeviceGetName") or (known.model if known else "unknown")
        bus = self._bus(handle) or (known.pci_bus_id if known else "unknown")
        labels = label_text(uuid=uuid, gpu=str(index), gpu_model=model, pci_bus_id=bus)
        gpu = Gpu(index, uuid, model, bus, handle, Ask(self.nvml, handle, labels, self.faults))
        try:
            gpu.ask.value("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)
            gpu.info = self._info(gpu)
        except (GpuLost, DriverGone) as error:
            log.warning("GPU %s is listed and does not answer: %s", uuid, error)
            gpu.up = False
        return gpu

    def _text(self, handle: Any, call: str) -> str:
        try:
            return text(self.nvml.call(call, handle))
        except NvmlError as error:
            log.info("%s: %s", call, error)
            return ""

    def _bus(self, handle: Any) -> str:
        try:
            return text(member(self.nvml.call("nvmlDeviceGetPciInfo", handle), "busId"))
        except NvmlError as error:
            log.info("nvmlDeviceGetPciInfo: %s", error)
            return ""

    @staticmethod
    def _info(gpu: Gpu) -> dict[str, str]:
        capability = gpu.ask.value("nvmlDeviceGetCudaComputeCapability")
        architecture = gpu.ask.value("nvmlDeviceGetArchitecture")
        return {
            "compute_capability": ".".join(map(str, capability)) if capability else "",
            "architecture": str(architecture) if architecture is not None else "",
        }

    def mark_lost(self, gpu: Gpu, why: object) -> None:
        """Take the GPU's series away and raise its state."""
        if gpu.up:
            log.error("GPU %s is lost: %s", gpu.uuid, why)
        gpu.up = False

    def mark_driver_gone(self, why: str) -> None:
        """Take every GPU's series away until NVML was opened again."""
        self._state = names.STATE_DRIVER_MISMATCH if "mismatch" in why else names.STATE_DRIVER_NOT_LOADED
        for gpu in self.gpus.values():
            gpu.up = False

    def samples(self, node: str) -> list[Sample]:
        """Identity and state; no reading."""
        found = [
            Sample(
                names.NODE_INFO,
                label_text(
                    node=node,
                    source=self.nvml.source,
                    driver_version=self._driver,
                    nvml_version=self._library,
                ),
                1,
            ),
            *state_set(names.NVML_STATE, names.NVML_STATES, self.state),
            Sample(names.GPUS_EXPECTED, "", self.expected),
            Sample(names.GPUS_HEALTHY, "", len(self.up)),
        ]
        for gpu in self.gpus.values():
            found.append(gpu.sample(names.GPU_UP, float(gpu.up)))
            if gpu.up:
                found.append(gpu.sample(names.GPU_INFO, 1, **gpu.info))
                found.append(gpu.sample(names.GPU_UNSUPPORTED_READINGS, len(gpu.ask.unsupported)))
        return found
