"""XID events -> counters by class and code; every class starts at 0, so that the first event is seen."""

import threading
from collections import Counter
from collections.abc import Iterator

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names
from slo.xids import CLASSES, class_of


class XidCounts:
    """Events since the agent started; written by the event thread, read by scrapes."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        self.watched = 0

    def add(self, uuid: str, code: int) -> None:
        """Count one event."""
        with self._lock:
            self._counts[uuid, code] += 1

    def samples(self, gpu: Gpu) -> Iterator[Sample]:
        """Counts of a GPU; they stay while it is lost, which is when they matter."""
        with self._lock:
            mine = {code: count for (uuid, code), count in self._counts.items() if uuid == gpu.uuid}
        for name in CLASSES:
            total = sum(count for code, count in mine.items() if class_of(code) == name)
            yield gpu.sample(names.GPU_XID_TOTAL, total, **{"class": name})
        for code, count in sorted(mine.items()):
            yield gpu.sample(names.GPU_XID_CODE_TOTAL, count, **{"class": class_of(code), "xid": str(code)})
