"""`process_*` of a process that can be restarted without ending: its start time and CPU reset."""

import time
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, GCCollector, Metric, PlatformCollector, ProcessCollector
from prometheus_client.registry import Collector


class RestartableProcess(Collector):
    """What ProcessCollector gives, counted from this object's creation."""

    def __init__(self) -> None:
        self._process = ProcessCollector(registry=None)
        self._started_at = time.time()
        self._cpu_seconds_before = time.process_time()

    def collect(self) -> Iterable[Metric]:
        """Yield the process families with a start time and a CPU counter of our own."""
        for family in self._process.collect():
            if family.name == "process_start_time_seconds":
                family.samples = [family.samples[0]._replace(value=self._started_at)]
            elif family.name == "process_cpu_seconds":
                spent = family.samples[0].value - self._cpu_seconds_before
                family.samples = [family.samples[0]._replace(value=max(0.0, spent))]
            yield family


def python_registry() -> CollectorRegistry:
    """A registry that knows only the interpreter (`python_*`)."""
    registry = CollectorRegistry()
    GCCollector(registry=registry)
    PlatformCollector(registry=registry)
    return registry


def process_registry() -> CollectorRegistry:
    """A registry with `python_*` and `process_*`, where an engine adds its own families."""
    registry = python_registry()
    registry.register(RestartableProcess())
    return registry
