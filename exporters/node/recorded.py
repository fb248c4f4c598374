"""A recording (JSON) -> NVML's answers, for tests and for showing dashboards where there is no GPU.

A recording is one machine, or `frames` of it that follow each other and begin again:
  {"driver": "580.1", "frames": [{"seconds": 30, "devices": [DEVICE, …]}, …]}  or  {"devices": [DEVICE, …]}
DEVICE: {"index": 0, "handle": ANSWER, "calls": {CALL: ANSWER}, "fields": {ID: number or ANSWER},
  "gpm": {ID: %}, "xids": [[seconds, code], …]}; CALL is nvidia-ml-py's name, `:argument` where it matters,
  `_v2` for memory info version 2, and `mig` for the instances.
ANSWER: {"return": value} or {"return_bytes": text} or {"raise": "NVML_ERROR_…"}.
A call that is not listed answers FUNCTION_NOT_FOUND. A file that is replaced is read again within half a second, so
that a fault can be brought to an agent that runs; its clock and the XIDs that were told go on.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exporters.node import nvml
from exporters.node.nvml import MEMORY_INFO_V2, EventSource, GpmSource, NvmlError

CODES = {
    "NVML_ERROR_UNINITIALIZED": nvml.UNINITIALIZED,
    "NVML_ERROR_INVALID_ARGUMENT": nvml.INVALID_ARGUMENT,
    "NVML_ERROR_NOT_SUPPORTED": nvml.NOT_SUPPORTED,
    "NVML_ERROR_NO_PERMISSION": nvml.NO_PERMISSION,
    "NVML_ERROR_NOT_FOUND": nvml.NOT_FOUND,
    "NVML_ERROR_DRIVER_NOT_LOADED": nvml.DRIVER_NOT_LOADED,
    "NVML_ERROR_LIBRARY_NOT_FOUND": nvml.LIBRARY_NOT_FOUND,
    "NVML_ERROR_FUNCTION_NOT_FOUND": nvml.FUNCTION_NOT_FOUND,
    "NVML_ERROR_GPU_IS_LOST": nvml.GPU_IS_LOST,
    "NVML_ERROR_RESET_REQUIRED": nvml.RESET_REQUIRED,
    "NVML_ERROR_LIB_RM_VERSION_MISMATCH": nvml.DRIVER_MISMATCH,
    "NVML_ERROR_IN_USE": nvml.IN_USE,
    "NVML_ERROR_UNKNOWN": nvml.UNKNOWN,
}


log = logging.getLogger(__name__)
_LOOK_SECONDS = 0.5


class RecordingError(ValueError):
    """A recording that cannot be used; the text names the file and what is wrong."""


def _answer(answer: Any) -> Any:
    """An ANSWER's value; raises NvmlError when it says so."""
    if "raise" in answer:
        raise NvmlError(CODES[answer["raise"]])
    if "return_bytes" in answer:
        return answer["return_bytes"].encode()
    value = answer["return"]
    if isinstance(value, dict):
        return {
            key: _answer(part) if isinstance(part, dict) and "return_bytes" in part else part
            for key, part in value.items()
        }
    return value


def _version(path: Path | None) -> tuple[int, int] | None:
    """Changes when the file is replaced; None when there is none."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns)


class RecordedNvml:
    """Answers as the recording says; handles are (device index,) and (device index, MIG slot)."""

    source = "recording"

    def __init__(
        self,
        document: dict[str, Any],
        clock: Callable[[], float] = time.monotonic,
        path: Path | None = None,
    ) -> None:
        self._document, self._clock, self._path = document, clock, path
        self._frames: list[dict[str, Any]] = document.get("frames") or [document]
        self._began: float | None = None
        self._looked_at = clock()
        self._version = _version(path)
        self.told: set[tuple[str, float, int]] = set()
        self.calls = 0

    @classmethod
    def load(cls, path: Path, clock: Callable[[], float] = time.monotonic) -> "RecordedNvml":
        """Read a recording; raises RecordingError."""
        return cls(cls._read(path), clock, path)

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        try:
            document: Any = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise RecordingError(f"{path}: not JSON: {error}") from error
        if not isinstance(document, dict) or not ("devices" in document or document.get("frames")):
            raise RecordingError(
                f"{path}: has neither `devices` nor `frames`; record it with the agent's format"
            )
        return document

    def _look(self) -> None:
        """Take a file that was replaced; one that cannot be used leaves everything as it was."""
        if self._path is None or self._clock() - self._looked_at < _LOOK_SECONDS:
            return
        self._looked_at = self._clock()
        if (version := _version(self._path)) == self._version:
            return
        self._version = version
        try:
            document = self._read(self._path)
        except RecordingError as error:
            log.warning("the recording stays as it was: %s", error)
            return
        self._document, self._frames = document, document.get("frames") or [document]

    def _elapsed(self) -> float:
        if self._began is None:
            self._began = self._clock()
        return self._clock() - self._began

    def _frame(self) -> dict[str, Any]:
        self._look()
        whole = sum(frame.get("seconds", 0.0) for frame in self._frames)
        if len(self._frames) == 1 or whole <= 0:
            return self._frames[0]
        left = self._elapsed() % whole
        for frame in self._frames:
            left -= frame.get("seconds", 0.0)
            if left < 0:
                return frame
        return self._frames[-1]

    def _device(self, index: int) -> dict[str, Any]:
        devices: list[dict[str, Any]] = self._frame()["devices"]
        if not 0 <= index < len(devices):
            raise NvmlError(nvml.GPU_NOT_FOUND)
        return devices[index]

    def open(self) -> None:
        """Raises the NvmlError that the recording has under `open`."""
        self._elapsed()
        if "open" in self._frame():
            _answer(self._frame()["open"])

    def close(self) -> None:
        """Nothing is held."""

    def call(self, name: str, *args: Any) -> Any:
        """Raises NvmlError."""
        self.calls += 1
        if name == "nvmlDeviceGetCount":
            return len(self._frame()["devices"])
        if name == "nvmlDeviceGetHandleByIndex":
            device = self._device(args[0])
            return _answer(device["handle"]) if "handle" in device else (args[0],)
        if name in ("nvmlSystemGetDriverVersion", "nvmlSystemGetNVMLVersion"):
            return self._document.get("driver", "")
        handle, *rest = args
        if len(handle) == 2:
            return self._mig_call(name, handle)
        return self._device_call(name, self._device(handle[0]).get("calls", {}), handle, rest)

    def _device_call(self, name: str, calls: dict[str, Any], handle: tuple[int, ...], rest: list[Any]) -> Any:
        if "mig" in calls and name == "nvmlDeviceGetMaxMigDeviceCount":
            return len(calls["mig"]) + 1
        if "mig" in calls and name == "nvmlDeviceGetMigDeviceHandleByIndex":
            if rest[0] >= len(calls["mig"]):
                raise NvmlError(nvml.NOT_FOUND)
            return (handle[0], rest[0])
        if rest == [MEMORY_INFO_V2]:
            name, rest = f"{name}_v2", []
        exact = ":".join([name, *map(str, rest)])
        if exact not in calls and name not in calls:
            raise NvmlError(nvml.FUNCTION_NOT_FOUND)
        return _answer(calls[exact] if exact in calls else calls[name])

    def _mig_call(self, name: str, handle: tuple[int, int]) -> Any:
        instance = self._device(handle[0])["calls"]["mig"][handle[1]]
        answers = {
            "nvmlDeviceGetUUID": instance["uuid"],
            "nvmlDeviceGetName": f"recorded MIG {instance['profile']}",
            "nvmlDeviceGetGpuInstanceId": handle[1] + 1,
            "nvmlDeviceGetMemoryInfo": instance["mem"],
        }
        if name not in answers:
            raise NvmlError(nvml.NOT_SUPPORTED)
        return answers[name]

    def fields(self, handle: Any, ids: Sequence[int]) -> dict[int, float | NvmlError]:
        """Field id -> number or fault."""
        recorded = self._device(handle[0]).get("fields", {})
        found: dict[int, float | NvmlError] = {}
        for number in ids:
            answer = recorded.get(str(number), {"raise": "NVML_ERROR_NOT_SUPPORTED"})
            try:
                found[number] = _answer(answer) if isinstance(answer, dict) else answer
            except NvmlError as error:
                found[number] = error
        return found

    def gpm(self, handle: Any, gpu_instance: int | None = None) -> GpmSource:
        """Raises NOT_SUPPORTED where the recording has no GPM; MIG instances have none."""
        device = self._device(handle[0])
        if gpu_instance is not None or "gpm" not in device:
            raise NvmlError(nvml.NOT_SUPPORTED)
        if "raise" in device["gpm"]:
            _answer(device["gpm"])
        return _RecordedGpm(self, handle[0])

    def gpm_values(self, index: int) -> dict[int, float]:
        """GPM of the frame that is on."""
        return {int(number): value for number, value in self._device(index).get("gpm", {}).items()}

    def events(self, handles: Sequence[Any]) -> tuple[EventSource, int]:
        """The recorded XIDs, each once when its time has come."""
        return _RecordedEvents(self), len(handles)

    def due_xids(self) -> list[tuple[str, float, int]]:
        """(uuid, seconds, code) of every XID recorded until now."""
        found = []
        for device in self._frame()["devices"]:
            uuid = nvml.text(_answer(device.get("calls", {}).get("nvmlDeviceGetUUID", {"return": "unknown"})))
            found += [(uuid, at, code) for at, code in device.get("xids", []) if at <= self._elapsed()]
        return found


class _RecordedGpm:
    def __init__(self, recording: RecordedNvml, index: int) -> None:
        self._recording, self._index, self._filled = recording, index, False

    def read(self, ids: Sequence[int]) -> dict[int, float]:
        if not self._filled:
            self._filled = True
            return {}
        values = self._recording.gpm_values(self._index)
        return {number: values[number] for number in ids if number in values}

    def close(self) -> None:
        self._filled = False


class _RecordedEvents:
    def __init__(self, recording: RecordedNvml) -> None:
        self._recording = recording

    def wait(self, milliseconds: int) -> tuple[str, int] | None:
        for event in self._recording.due_xids():
            if event not in self._recording.told:
                self._recording.told.add(event)
                return event[0], event[2]
        time.sleep(milliseconds / 1000)
        return None

    def close(self) -> None:
        """What was told stays told: a driver does not repeat events to a new event set."""
