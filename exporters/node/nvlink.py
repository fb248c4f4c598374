"""NVLink: which links are up, traffic and errors; a GPU without links has no series."""

from collections.abc import Iterator

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names

_MOST_LINKS = 18
_ERRORS = {"replay": 0, "recovery": 1, "crc_flit": 2, "crc_data": 3, "ecc_data": 4}
_KIBIBYTE = 1024
# Field ids of the sum over all links: NVLink 5 counts bytes, older ones KiB of data.
_BYTES = {202: ("sent", 1), 204: ("received", 1), 138: ("sent", _KIBIBYTE), 139: ("received", _KIBIBYTE)}


def collect(gpu: Gpu) -> Iterator[Sample]:
    """Links in order until the first that this GPU does not have."""
    links = 0
    for link in range(_MOST_LINKS):
        up = gpu.ask.number("small", "nvmlDeviceGetNvLinkState", link)
        if up is None:
            break
        links += 1
        yield gpu.sample(names.GPU_NVLINK_UP, up, link=str(link))
        for kind, number in _ERRORS.items():
            count = gpu.ask.number("count", "nvmlDeviceGetNvLinkErrorCounter", link, number)
            if count is not None:
                yield gpu.sample(names.GPU_NVLINK_ERRORS_TOTAL, count, link=str(link), kind=kind)
    if links:
        yield from _traffic(gpu)


def _traffic(gpu: Gpu) -> Iterator[Sample]:
    seen: set[str] = set()
    for number, count in gpu.ask.fields("count", tuple(_BYTES)).items():
        direction, unit = _BYTES[number]
        if direction not in seen:
            seen.add(direction)
            yield gpu.sample(names.GPU_NVLINK_BYTES_TOTAL, count * unit, direction=direction)
