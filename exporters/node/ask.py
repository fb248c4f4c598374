"""Asks NVML about one GPU, one field at a time: what fails costs that field and nothing else."""

import logging
import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from exporters.node.nvml import (
    ARGUMENT_VERSION_MISMATCH,
    DEPRECATED,
    DRIVER_MISMATCH,
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    GPU_NOT_FOUND,
    INVALID_ARGUMENT,
    NO_DATA,
    NOT_FOUND,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    UNINITIALIZED,
    Nvml,
    NvmlError,
)

log = logging.getLogger(__name__)

_UNSUPPORTED = {NOT_SUPPORTED, FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH, DEPRECATED, INVALID_ARGUMENT}
_NOTHING_NEW = {NO_DATA, NOT_FOUND}
_LOST = {GPU_IS_LOST, RESET_REQUIRED, GPU_NOT_FOUND}
_DRIVER_GONE = {UNINITIALIZED, DRIVER_NOT_LOADED, DRIVER_MISMATCH}

# Readings outside of these are markers of "no value", never values.
_COUNT_LIMIT = float(2**62)
RANGES = {
    "temperature": (-50.0, 150.0),
    "percent": (0.0, 100.0),
    "ratio": (0.0, 1.0),
    "bytes": (0.0, _COUNT_LIMIT),
    "count": (0.0, _COUNT_LIMIT),
    "milliwatts": (0.0, 1e8),
    "megahertz": (0.0, 1e5),
    "mebibytes_per_second": (0.0, 1e8),
    "small": (0.0, 65535.0),
    "mask": (0.0, float(2**32 - 1)),
}


class GpuLost(Exception):
    """The GPU fell off the bus, or needs a reset before it answers."""


class DriverGone(Exception):
    """NVML as a whole stopped answering: it must be opened again."""


@dataclass
class Faults:
    """What went wrong since the agent started, for all GPUs."""

    dropped: Counter[str] = field(default_factory=Counter)
    errors: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # labels of the GPU, call, error
    lock: threading.Lock = field(default_factory=threading.Lock)

    def drop(self, quantity: str) -> None:
        """Count a reading that cannot be true."""
        with self.lock:
            self.dropped[quantity] += 1

    def error(self, labels: str, call: str, name: str) -> None:
        """Count a failed reading; the first of its kind is logged."""
        with self.lock:
            first = (labels, call, name) not in self.errors
            self.errors[labels, call, name] += 1
        if first:
            log.warning(
                "%s of GPU %s failed: %s (counted from here on, not logged again)", call, labels, name
            )


def plausible(quantity: str, value: object, faults: Faults) -> float | None:
    """The value as a float, or None when it is no number or out of the quantity's range (counted)."""
    low, high = RANGES[quantity]
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and low <= number <= high:
            return number
    faults.drop(quantity)
    return None


class Ask:
    """The questions about one GPU. A field that is not supported is not asked again."""

    def __init__(self, nvml: Nvml, handle: Any, labels: str, faults: Faults) -> None:
        self.nvml, self.handle, self.labels, self.faults = nvml, handle, labels, faults
        self.unsupported: set[object] = set()
        self._constants: dict[object, float] = {}

    def value(self, call: str, *args: Any) -> Any | None:
        """What NVML answers, or None: not supported, nothing new, or failed (counted).

        Raises GpuLost, DriverGone.
        """
        key = (call, args)
        if key in self.unsupported:
            return None
        try:
            return self.nvml.call(call, self.handle, *args)
        except NvmlError as error:
            self.judge(error, call, key)
            return None

    def judge(self, error: NvmlError, call: str, key: object) -> None:
        """Remember, count or raise on a fault of one field."""
        if error.code in _LOST:
            raise GpuLost(str(error)) from error
        if error.code in _DRIVER_GONE:
            raise DriverGone(error.name) from error
        if error.code in _UNSUPPORTED:
            self.unsupported.add(key)
        elif error.code not in _NOTHING_NEW:
            self.faults.error(self.labels, call, error.name)

    def number(self, quantity: str, call: str, *args: Any) -> float | None:
        """A plausible number in NVML's unit, or None; raises as value() does."""
        answer = self.value(call, *args)
        return None if answer is None else plausible(quantity, answer, self.faults)

    def constant(self, quantity: str, call: str, *args: Any) -> float | None:
        """As number(), asked once: some limits cost NVML 1.5 ms of CPU each and never change."""
        key = (call, args)
        if key not in self._constants:
            value = self.number(quantity, call, *args)
            if value is None:
                return None
            self._constants[key] = value
        return self._constants[key]

    def fields(self, quantity: str, ids: Sequence[int]) -> dict[int, float]:
        """Those of the field values that can be had, in NVML's unit; raises as value() does."""
        wanted = [i for i in ids if ("field", i) not in self.unsupported]
        if not wanted:
            return {}
        try:
            answers = self.nvml.fields(self.handle, wanted)
        except NvmlError as error:
            self.judge(error, "nvmlDeviceGetFieldValues", ("fields", tuple(ids)))
            return {}
        found: dict[int, float] = {}
        for number, answer in answers.items():
            if isinstance(answer, NvmlError):
                self.judge(answer, f"field {number}", ("field", number))
            elif (value := plausible(quantity, answer, self.faults)) is not None:
                found[number] = value
        return found
