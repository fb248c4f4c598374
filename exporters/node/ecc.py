"""ECC errors, remapped rows, retired pages, and what the driver asks to be done."""

from collections.abc import Iterator

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names

_SEVERITIES = {"corrected": 0, "uncorrected": 1}
_LIFETIMES = {"volatile": 0, "aggregate": 1}
_CAUSES = {"single_bit": 0, "double_bit": 1}
_RECOVERY_ACTION = 230


def collect(gpu: Gpu) -> Iterator[Sample]:
    """Everything about memory health."""
    mode = gpu.ask.value("nvmlDeviceGetEccMode")
    if mode is not None:
        yield gpu.sample(names.GPU_ECC_ENABLED, float(mode[0]))
    for severity, kind in _SEVERITIES.items():
        for lifetime, counter in _LIFETIMES.items():
            count = gpu.ask.number("count", "nvmlDeviceGetTotalEccErrors", kind, counter)
            if count is not None:
                yield gpu.sample(names.GPU_ECC_ERRORS_TOTAL, count, severity=severity, lifetime=lifetime)
    yield from _remapping(gpu)
    action = gpu.ask.fields("small", (_RECOVERY_ACTION,)).get(_RECOVERY_ACTION)
    if action is not None:
        yield gpu.sample(names.GPU_RECOVERY_ACTION, action)


def _remapping(gpu: Gpu) -> Iterator[Sample]:
    rows = gpu.ask.value("nvmlDeviceGetRemappedRows")
    if rows is not None:
        corrected, uncorrected, pending, failed = rows
        yield gpu.sample(names.GPU_REMAPPED_ROWS_TOTAL, float(corrected), severity="corrected")
        yield gpu.sample(names.GPU_REMAPPED_ROWS_TOTAL, float(uncorrected), severity="uncorrected")
        yield gpu.sample(names.GPU_ROW_REMAP_PENDING, float(bool(pending)))
        yield gpu.sample(names.GPU_ROW_REMAP_FAILED, float(bool(failed)))
        return
    for cause, number in _CAUSES.items():
        pages = gpu.ask.value("nvmlDeviceGetRetiredPages", number)
        if pages is not None:
            yield gpu.sample(names.GPU_RETIRED_PAGES_TOTAL, float(len(pages)), cause=cause)
