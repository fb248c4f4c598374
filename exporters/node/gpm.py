"""GPM (Hopper and newer): what the chip's parts really did, into windows; elsewhere a state that says why not."""

import logging
from collections.abc import Iterator

from exporters.node.ask import plausible
from exporters.node.gpus import Gpu
from exporters.node.nvml import (
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    IN_USE,
    INVALID_ARGUMENT,
    NOT_SUPPORTED,
    GpmSource,
    NvmlError,
)
from exporters.node.samples import Sample, state_set
from exporters.node.windows import Window
from slo.names import node as names

log = logging.getLogger(__name__)

_RATIOS = {
    1: names.GPU_GRAPHICS_ACTIVE_RATIO,
    2: names.GPU_SM_ACTIVE_RATIO,
    3: names.GPU_SM_OCCUPANCY_RATIO,
    5: names.GPU_TENSOR_ACTIVE_RATIO,
    10: names.GPU_DRAM_BANDWIDTH_RATIO,
}
_PIPES = {4: "integer", 11: "fp64", 12: "fp32", 13: "fp16"}
_TRAFFIC = {
    20: (names.GPU_PCIE_BYTES_PER_SECOND, "sent"),
    21: (names.GPU_PCIE_BYTES_PER_SECOND, "received"),
    60: (names.GPU_NVLINK_BYTES_PER_SECOND, "received"),
    61: (names.GPU_NVLINK_BYTES_PER_SECOND, "sent"),
}
METRIC_IDS = (*_RATIOS, *_PIPES, *_TRAFFIC)
_MEBIBYTE = 2**20
_STATE_BY_CODE = {
    NOT_SUPPORTED: "unsupported",
    FUNCTION_NOT_FOUND: "unsupported",
    INVALID_ARGUMENT: "unsupported",
    IN_USE: "in_use",
}


class Gpm:
    """GPM of one GPU: opened once, read on its own cadence."""

    def __init__(self, seconds: float) -> None:
        self.state = "unsupported"
        self.ratios = {family: Window(seconds) for family in _RATIOS.values()}
        self.pipes = {pipe: Window(seconds) for pipe in _PIPES.values()}
        self.traffic: dict[tuple[str, str], float] = {}
        self._source: GpmSource | None = None
        self._given_up = False

    def read(self, gpu: Gpu, now: float) -> None:
        """Take what GPM measured since the last read; a fault becomes the state."""
        if self._given_up:
            return
        try:
            if self._source is None:
                self._source = gpu.ask.nvml.gpm(gpu.handle)
            found = self._source.read(METRIC_IDS)
        except NvmlError as error:
            self._fail(gpu, error)
            return
        self.state = "supported"
        self._keep(gpu, found, now)

    def _fail(self, gpu: Gpu, error: NvmlError) -> None:
        if error.code == GPU_IS_LOST:
            gpu.ask.judge(error, "nvmlGpmSampleGet", "gpm")
        state = _STATE_BY_CODE.get(error.code, "error")
        if state != self.state:
            log.warning("no GPM of GPU %s: %s", gpu.uuid, error)
        self.state = state
        self._given_up = state == "unsupported"

    def _keep(self, gpu: Gpu, found: dict[int, float], now: float) -> None:
        faults = gpu.ask.faults
        for number, raw in found.items():
            if number in _TRAFFIC:
                rate = plausible("mebibytes_per_second", raw, faults)
                if rate is not None:
                    self.traffic[_TRAFFIC[number]] = rate * _MEBIBYTE
                continue
            percent = plausible("percent", raw, faults)
            if percent is None:
                continue
            window = self.ratios[_RATIOS[number]] if number in _RATIOS else self.pipes[_PIPES[number]]
            window.add(now, percent / 100)

    def samples(self, gpu: Gpu, since: float, now: float) -> Iterator[Sample]:
        """The state, and each quantity that was measured since."""
        yield from state_set(names.GPM_STATE, names.GPM_STATES, self.state, gpu.labels)
        if self.state != "supported":
            return
        for family, window in self.ratios.items():
            if stats := window.stats(since):
                for stat, value in stats.items():
                    yield gpu.sample(family, value, stat=stat)
        for pipe, window in self.pipes.items():
            if stats := window.stats(since):
                yield gpu.sample(names.GPU_PIPE_ACTIVE_RATIO, stats.mean, pipe=pipe)
        if not any(window.fresh(now) for window in self.ratios.values()):
            return
        for (family, direction), value in list(self.traffic.items()):
            yield gpu.sample(family, value, direction=direction)

    def means(self, since: float) -> dict[str, float]:
        """Family or pipe -> mean since then; what was not measured is absent."""
        windows = {**self.ratios, **self.pipes}
        return {name: stats.mean for name, window in windows.items() if (stats := window.stats(since))}
