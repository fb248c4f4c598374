"""The one thin door to NVML: calls by name, field values, GPM, events; every fault is an NvmlError.

`LiveNvml` answers from the driver through nvidia-ml-py; `exporters.node.recorded` from a recording.
"""

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

# nvmlReturn_t; the text differs by driver, the number does not.
UNINITIALIZED = 1
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NO_PERMISSION = 4
NOT_FOUND = 6
DRIVER_NOT_LOADED = 9
TIMEOUT = 10
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
DRIVER_MISMATCH = 18
IN_USE = 19
NO_DATA = 21
ARGUMENT_VERSION_MISMATCH = 25
DEPRECATED = 26
GPU_NOT_FOUND = 28
UNKNOWN = 999
NO_BINDINGS = -1  # ours: nvidia-ml-py is not installed

NAMES = {
    NO_BINDINGS: "no_bindings",
    UNINITIALIZED: "uninitialized",
    INVALID_ARGUMENT: "invalid_argument",
    NOT_SUPPORTED: "not_supported",
    NO_PERMISSION: "no_permission",
    NOT_FOUND: "not_found",
    DRIVER_NOT_LOADED: "driver_not_loaded",
    TIMEOUT: "timeout",
    LIBRARY_NOT_FOUND: "library_not_found",
    FUNCTION_NOT_FOUND: "function_not_found",
    GPU_IS_LOST: "gpu_is_lost",
    RESET_REQUIRED: "reset_required",
    DRIVER_MISMATCH: "lib_rm_version_mismatch",
    IN_USE: "in_use",
    NO_DATA: "no_data",
    ARGUMENT_VERSION_MISMATCH: "argument_version_mismatch",
    DEPRECATED: "deprecated",
    GPU_NOT_FOUND: "gpu_not_found",
    UNKNOWN: "unknown",
}
XID_EVENT = 0x8
MEMORY_INFO_V2 = 0x2000028  # nvmlMemory_v2: the struct that keeps reserved apart


class NvmlError(Exception):
    """NVML answered with an error; `code` is its nvmlReturn_t."""

    def __init__(self, code: int, text: str = "") -> None:
        super().__init__(text or NAMES.get(code, f"code {code}"))
        self.code = code

    @property
    def name(self) -> str:
        """The code as a label value."""
        return NAMES.get(self.code, f"code_{self.code}")


class GpmSource(Protocol):
    """Two GPM samples swapped at each read."""

    def read(self, ids: Sequence[int]) -> dict[int, float]:
        """The metrics since the last read, as NVML gives them (%, MiB/s); empty at the first read."""
        ...

    def close(self) -> None:
        """Free both samples."""
        ...


class EventSource(Protocol):
    """XID events of the GPUs it was opened for."""

    def wait(self, milliseconds: int) -> tuple[str, int] | None:
        """The next (uuid, xid), or None when none came in time."""
        ...

    def close(self) -> None:
        """Free the event set."""
        ...


class Nvml(Protocol):
    """What collectors may ask. Handles are opaque; every method raises NvmlError."""

    source: str

    def open(self) -> None:
        """Load the library and attach to the GPUs."""
        ...

    def close(self) -> None:
        """Detach; handles are void afterwards."""
        ...

    def call(self, name: str, *args: Any) -> Any:
        """Call the NVML function of that name as nvidia-ml-py spells it."""
        ...

    def fields(self, handle: Any, ids: Sequence[int]) -> dict[int, float | NvmlError]:
        """Several field values in one call, each with a fault of its own."""
        ...

    def gpm(self, handle: Any, gpu_instance: int | None = None) -> GpmSource:
        """GPM of a GPU, or of one of its MIG instances."""
        ...

    def events(self, handles: Sequence[Any]) -> tuple[EventSource, int]:
        """An event set and how many of the GPUs it could be registered for."""
        ...


_UNION = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal", 6: "usVal"}


class LiveNvml:
    """The driver, through the module `pynvml` of the distribution nvidia-ml-py."""

    source = "nvml"

    def __init__(self) -> None:
        self._module: Any = None

    def open(self) -> None:
        """Raises NvmlError, with NO_BINDINGS when nvidia-ml-py is not installed."""
        if self._module is None:
            try:
                self._module = importlib.import_module("pynvml")
            except ImportError as error:
                raise NvmlError(NO_BINDINGS, "nvidia-ml-py is not installed; add the extra `node`") from error
        self.call("nvmlInit")

    def close(self) -> None:
        """Drop the attachment made by open()."""
        self.call("nvmlShutdown")

    def call(self, name: str, *args: Any) -> Any:
        """Raises NvmlError; a function that these bindings lack is FUNCTION_NOT_FOUND."""
        if self._module is None:
            raise NvmlError(UNINITIALIZED)
        function = getattr(self._module, name, None)
        if function is None:
            raise NvmlError(FUNCTION_NOT_FOUND, f"nvidia-ml-py has no {name}")
        try:
            return function(*args)
        except self._module.NVMLError as error:
            raise NvmlError(int(error.value), str(error)) from error

    def fields(self, handle: Any, ids: Sequence[int]) -> dict[int, float | NvmlError]:
        """Field id -> number in NVML's unit, or the fault of that field."""
        found: dict[int, float | NvmlError] = {}
        for answer in self.call("nvmlDeviceGetFieldValues", handle, list(ids)):
            member = _UNION.get(answer.valueType)
            if answer.nvmlReturn != 0:
                found[answer.fieldId] = NvmlError(int(answer.nvmlReturn))
            elif member is None:
                found[answer.fieldId] = NvmlError(UNKNOWN, f"value type {answer.valueType}")
            else:
                found[answer.fieldId] = getattr(answer.value, member)
        return found

    def gpm(self, handle: Any, gpu_instance: int | None = None) -> GpmSource:
        """Raises NvmlError NOT_SUPPORTED before Hopper."""
        if not self.call("nvmlGpmQueryDeviceSupport", handle).isSupportedDevice:
            raise NvmlError(NOT_SUPPORTED)
        return _LiveGpm(self, handle, gpu_instance)

    def events(self, handles: Sequence[Any]) -> tuple[EventSource, int]:
        """GPUs whose driver offers no XID events are passed over and not counted."""
        source = _LiveEvents(self)
        watched = 0
        for handle in handles:
            try:
                if self.call("nvmlDeviceGetSupportedEventTypes", handle) & XID_EVENT:
                    self.call("nvmlDeviceRegisterEvents", handle, XID_EVENT, source.set)
                    watched += 1
            except NvmlError as error:
                if error.code not in (NOT_SUPPORTED, GPU_IS_LOST):
                    source.close()
                    raise
        return source, watched

    def module(self) -> Any:
        """The bindings, for structs that only they can build."""
        return self._module


class _LiveGpm:
    def __init__(self, nvml: LiveNvml, handle: Any, gpu_instance: int | None) -> None:
        self._nvml, self._handle, self._gpu_instance = nvml, handle, gpu_instance
        self._now = nvml.call("nvmlGpmSampleAlloc")
        self._before = nvml.call("nvmlGpmSampleAlloc")
        self._filled = False

    def read(self, ids: Sequence[int]) -> dict[int, float]:
        if self._gpu_instance is None:
            self._nvml.call("nvmlGpmSampleGet", self._handle, self._now)
        else:
            self._nvml.call("nvmlGpmMigSampleGet", self._handle, self._gpu_instance, self._now)
        found = self._metrics(ids) if self._filled else {}
        self._before, self._now = self._now, self._before
        self._filled = True
        return found

    def _metrics(self, ids: Sequence[int]) -> dict[int, float]:
        module = self._nvml.module()
        request = module.c_nvmlGpmMetricsGet_t()
        request.version = module.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics = len(ids)
        request.sample1, request.sample2 = self._before, self._now
        for at, metric in enumerate(ids):
            request.metrics[at].metricId = metric
        self._nvml.call("nvmlGpmMetricsGet", request)
        answers = [request.metrics[at] for at in range(len(ids))]
        return {int(a.metricId): float(a.value) for a in answers if a.nvmlReturn == 0}

    def close(self) -> None:
        for sample in (self._now, self._before):
            self._nvml.call("nvmlGpmSampleFree", sample)


class _LiveEvents:
    def __init__(self, nvml: LiveNvml) -> None:
        self._nvml = nvml
        self.set = nvml.call("nvmlEventSetCreate")

    def wait(self, milliseconds: int) -> tuple[str, int] | None:
        try:
            event = self._nvml.call("nvmlEventSetWait_v2", self.set, milliseconds)
        except NvmlError as error:
            if error.code == TIMEOUT:
                return None
            raise
        if not event.eventType & XID_EVENT:
            return None
        return text(self._nvml.call("nvmlDeviceGetUUID", event.device)), int(event.eventData)

    def close(self) -> None:
        self._nvml.call("nvmlEventSetFree", self.set)


def text(value: object) -> str:
    """NVML text as str: older bindings answer bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def member(answer: Any, name: str) -> Any:
    """A member of a struct, or of the mapping that a recording has in its place."""
    return answer[name] if isinstance(answer, dict) else getattr(answer, name)
