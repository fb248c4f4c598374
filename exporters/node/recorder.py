"""NVML -> the same answers, and a recording of the last one of each call, for `recorded.py` to replay."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exporters.node import nvml
from exporters.node.nvml import MEMORY_INFO_V2, EventSource, GpmSource, Nvml, NvmlError
from exporters.node.recorded import CODES

_NAMES = {code: name for name, code in CODES.items()}
_HIDDEN_UUID = "GPU-00000000-0000-0000-0000-{:012d}"
_SERIAL = "nvmlDeviceGetSerial"


def _plain(value: Any) -> Any:
    """A struct or list of them as JSON; bytes as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "_fields_"):
        return {name: _plain(getattr(value, name)) for name, *_ in value._fields_}
    if hasattr(value, "__dict__"):
        return {name: _plain(item) for name, item in vars(value).items()}
    return value


def _fault(error: NvmlError) -> dict[str, str]:
    return {"raise": _NAMES.get(error.code, "NVML_ERROR_UNKNOWN")}


class Recorder:
    """An Nvml that hands every answer on; hardware ids are replaced, in what is recorded and handed on."""

    source = "nvml"

    def __init__(self, inner: Nvml) -> None:
        self._inner = inner
        self._frames: list[dict[str, Any]] = []
        self._driver = ""
        self._lock = threading.Lock()
        self.begin("start")

    def begin(self, phase: str) -> None:
        """What is answered from now on belongs to this frame."""
        with self._lock:
            self._frames.append({"phase": phase, "seconds": 10, "devices": []})

    def document(self, about: str, phases: Sequence[str]) -> dict[str, Any]:
        """The frames of these phases as a recording; answers of the frame before stand in where
        a frame asked less."""
        merged: list[dict[str, Any]] = []
        for frame in self._frames:
            devices = (
                [_over(old, new) for old, new in zip(merged[-1]["devices"], frame["devices"], strict=False)]
                if merged
                else []
            )
            merged.append({**frame, "devices": devices or frame["devices"]})
        return {"about": about, "driver": self._driver, "frames": [f for f in merged if f["phase"] in phases]}

    def save(self, path: Path, about: str, phases: Sequence[str]) -> None:
        """Write the recording."""
        text = json.dumps(self.document(about, phases), separators=(",", ":"), sort_keys=True)
        path.write_text(text, encoding="utf-8")

    def _device(self, index: int) -> dict[str, Any]:
        devices = self._frames[-1]["devices"]
        while len(devices) <= index:
            devices.append({"index": len(devices), "calls": {}, "fields": {}, "gpm": {}})
        found: dict[str, Any] = devices[index]
        return found

    def open(self) -> None:
        """Raises NvmlError."""
        self._inner.open()

    def close(self) -> None:
        """Detach."""
        self._inner.close()

    def call(self, name: str, *args: Any) -> Any:
        """Raises NvmlError. Handles are (index, handle)."""
        if not args or name == "nvmlDeviceGetHandleByIndex":
            answer = self._inner.call(name, *args)
            if name == "nvmlSystemGetDriverVersion":
                self._driver = nvml.text(answer)
            return (args[0], answer) if args else answer
        (index, handle), *rest = args
        key = f"{name}_v2" if rest == [MEMORY_INFO_V2] else ":".join([name, *map(str, rest)])
        try:
            answer = self._inner.call(name, handle, *rest)
        except NvmlError as error:
            self._keep(index, "calls", key, _fault(error))
            raise
        if name == "nvmlDeviceGetUUID":
            answer = _HIDDEN_UUID.format(index + 1)
        if name != _SERIAL:
            self._keep(index, "calls", key, {"return": _plain(answer)})
        return answer

    def _keep(self, index: int, part: str, key: str, value: Any) -> None:
        with self._lock:
            self._device(index)[part][key] = value

    def fields(self, handle: Any, ids: Sequence[int]) -> dict[int, float | NvmlError]:
        """Field values, each kept."""
        index, inner = handle
        found = self._inner.fields(inner, ids)
        for number, value in found.items():
            kept = _fault(value) if isinstance(value, NvmlError) else value
            self._keep(index, "fields", str(number), kept)
        return found

    def gpm(self, handle: Any, gpu_instance: int | None = None) -> GpmSource:
        """A GPM source whose values are kept; a GPU without GPM is recorded as such."""
        index, inner = handle
        try:
            return _RecordingGpm(self, index, self._inner.gpm(inner, gpu_instance))
        except NvmlError as error:
            self._keep(index, "gpm", "raise", _fault(error)["raise"])
            raise

    def keep_gpm(self, index: int, values: dict[int, float]) -> None:
        """Keep what GPM measured."""
        for number, value in values.items():
            self._keep(index, "gpm", str(number), value)

    def events(self, handles: Sequence[Any]) -> tuple[EventSource, int]:
        """Events are handed on and not recorded: none is wanted while recording."""
        return self._inner.events([inner for _, inner in handles])


class _RecordingGpm:
    def __init__(self, recorder: Recorder, index: int, inner: GpmSource) -> None:
        self._recorder, self._index, self._inner = recorder, index, inner

    def read(self, ids: Sequence[int]) -> dict[int, float]:
        found = self._inner.read(ids)
        self._recorder.keep_gpm(self._index, found)
        return found

    def close(self) -> None:
        self._inner.close()


def _over(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A device's answers with the newer ones over the older."""
    return {
        part: {**old[part], **new.get(part, {})} if isinstance(old[part], dict) else new.get(part, old[part])
        for part in old
    }
