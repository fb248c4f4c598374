"""GPU side + host side + cadences -> one agent whose scrape reads nothing and so waits for nothing."""

import threading
import time
from collections.abc import Iterator

from exporters.node.ask import Faults
from exporters.node.config import NodeConfig
from exporters.node.gpu_side import GpuSide
from exporters.node.gpus import Fleet
from exporters.node.host_side import HostSide
from exporters.node.nvml import Nvml
from exporters.node.rounds import Round, Rounds
from exporters.node.samples import Sample, label_text, render
from exporters.node.windows import Scrapers
from slo.names import node as names
from slo.node import Node


class Agent:
    """One node's agent; `start` begins the cadences, `scrape` answers from what they kept."""

    def __init__(self, nvml: Nvml, config: NodeConfig, spec: Node) -> None:
        self._config, self._spec = config, spec
        faults = Faults()
        fleet = Fleet(nvml, faults, config.file.expected_gpus)
        self.gpu = GpuSide(fleet, faults, spec, config.proc_root, config.sys_root)
        self.host = HostSide(config, fleet, lambda: self.gpu.pids_by_uuid)
        every = spec.sampling
        self.sampler = Round("sampler", every.sampler_seconds, self.gpu.sampler_round)
        self.rounds = Rounds(
            (
                Round("gpu_slow", every.slow_seconds, self.gpu.slow_round),
                self.sampler,
                Round("gpm", every.gpm_seconds, self.gpu.gpm_round),
                Round("gpu_processes", every.process_seconds, self.gpu.process_round),
                Round("xid", 0.5, self.gpu.event_round),
                Round("processes", every.process_seconds, self.host.process_round),
                Round("core_threads", every.core_thread_seconds, self.host.thread_round),
            )
        )
        self._scrapers = Scrapers(every.longest_window_seconds)
        self._lock = threading.Lock()
        self._render_seconds = 0.0

    def open(self) -> None:
        """Attach to the driver and take one slow reading, so that the first scrape is whole."""
        now = time.monotonic()
        self.host.process_round(now)
        for one in self.rounds.all:
            if one.name in ("gpu_slow", "gpu_processes", "processes"):
                one.once(now)

    def start(self) -> None:
        """Begin the cadences."""
        self.rounds.start()

    @property
    def ready(self) -> bool:
        """Whether the sampler ran at least once."""
        return self.sampler.ticks > 0

    def scrape(self, scraper: str, now: float | None = None) -> bytes:
        """The exposition for `scraper`, whose windows reach back to its last scrape."""
        started = time.perf_counter()
        now = time.monotonic() if now is None else now
        with self._lock:
            since = self._scrapers.since(scraper, now)
        body = render(self.samples(since, now))
        self._render_seconds = time.perf_counter() - started
        return body

    def samples(self, since: float, now: float) -> Iterator[Sample]:
        """Everything that is known now."""
        yield from self.gpu.samples(self._config.node, since, now, self.host.owner)
        yield from self.host.samples()
        yield from self._own_samples(now)

    def _own_samples(self, now: float) -> Iterator[Sample]:
        for one in self.rounds.all:
            labels = label_text(collector=one.name)
            if one.ticks:
                yield Sample(names.COLLECTOR_SUCCESS, labels, float(one.success))
                yield Sample(names.COLLECTOR_DURATION_SECONDS, labels, one.duration)
            if one.good_at is not None:
                yield Sample(names.COLLECTOR_AGE_SECONDS, labels, max(0.0, now - one.good_at))
        yield Sample(names.SAMPLER_TICKS_TOTAL, "", self.sampler.ticks)
        yield Sample(names.SAMPLER_LATE_TOTAL, "", self.sampler.late)
        yield Sample(names.SAMPLER_CPU_SECONDS_TOTAL, "", self.sampler.cpu_seconds)
        yield Sample(names.SCRAPE_RENDER_SECONDS, "", self._render_seconds)

    def stop(self) -> None:
        """End the cadences and let go of the driver."""
        self.rounds.stop()
        self.gpu.close()
