"""A run's growing files -> Prometheus series while it goes on, in the process that waits for it.

Reading the files costs the load client nothing and sees all its workers. Latency gauges are of the answers that
ended in the last window; what is unknown is not exposed.
"""

import itertools
import json
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from loadtests.plan import LoadPlan
from loadtests.records import RequestRecord, failures, from_mapping, percentile
from loadtests.replay import TraceRate, trace_of
from loadtests.report import MEASURES
from loadtests.shapes import level_at
from slo.names import load as names

WINDOW_S = 15.0
_PERCENTS = (50.0, 95.0, 99.0)


class _Tail:
    """Complete new lines of one growing file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def lines(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as file:
            file.seek(self._at)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._at += len(whole)
        for line in whole.splitlines():
            yield json.loads(line)


class LiveRun(Collector):
    """Collector over a run's folder; register it, serve the registry, and unregister it after the run."""

    def __init__(self, plan: LoadPlan, folder: Path, began_s: float) -> None:
        self._plan, self._folder, self._began_s = plan, folder, began_s
        self._lock = threading.Lock()  # two scrapers at a time must not both count a line
        self._tails: dict[Path, _Tail] = {}
        self._recent: deque[RequestRecord] = deque()
        self._requests: Counter[tuple[str, str, str, str]] = Counter()
        self._errors: Counter[str] = Counter()
        self._retries = self._tokens = 0
        self._health: dict[int, dict[str, Any]] = {}
        self._first_due_s: float | None = None
        self._trace: TraceRate | None = None

    def describe(self) -> list[Metric]:
        """Nothing is known before the run's files are there; registering must not read them."""
        return []

    def collect(self) -> Iterator[Metric]:
        """What the files say now."""
        with self._lock:
            found = list(self._now())
        yield from found

    def _now(self) -> Iterator[Metric]:
        self._read()
        yield GaugeMetricFamily(names.RUN_START, "When the load run began, Unix time.", value=self._began_s)
        info = GaugeMetricFamily(
            names.RUN_INFO, "The load run under way, always 1.", labels=["run", "model", "arrival"]
        )
        info.add_metric([self._folder.name, self._plan.model, self._plan.arrival.kind], 1)
        yield info
        yield from self._totals()
        yield from self._window()
        yield from self._client()

    def _read(self) -> None:
        for path in sorted(self._folder.glob("records-*.jsonl")):
            for line in self._tails.setdefault(path, _Tail(path)).lines():
                self._count(from_mapping(line))
        for path in sorted(self._folder.glob("client-*.jsonl")):
            for sample in self._tails.setdefault(path, _Tail(path)).lines():
                if self._first_due_s is None:  # the client takes a while to start, or waits for the minute
                    self._first_due_s = sample["at_s"] + sample["wall_offset_s"] - sample["seconds"]
                self._health[sample["worker"]] = sample
        oldest = time.monotonic() - WINDOW_S
        self._recent = deque(record for record in self._recent if record.end_s >= oldest)

    def _count(self, record: RequestRecord) -> None:
        if record.will_retry:
            self._retries += 1
            return
        self._recent.append(record)
        self._requests[record.endpoint, record.tenant or "", record.lane or "", record.outcome] += 1
        if record.outcome == "error":
            self._errors[record.error_name or "unknown"] += 1
        elif record.outcome == "ok":
            self._tokens += record.output_tokens or 0

    def _totals(self) -> Iterator[Metric]:
        labels = ["endpoint", "tenant", "lane", "outcome"]
        requests = CounterMetricFamily(names.REQUESTS, "Requests that ended, by how.", labels=labels)
        for key, count in sorted(self._requests.items()):
            requests.add_metric(key, count)
        yield requests
        errors = CounterMetricFamily(
            names.ERRORS, "Failed requests by kind and the server's type.", labels=["error"]
        )
        for name, count in sorted(self._errors.items()):
            errors.add_metric([name], count)
        yield errors
        yield CounterMetricFamily(
            names.RETRIES, "Attempts that failed and were tried again.", value=self._retries
        )
        yield CounterMetricFamily(names.OUTPUT_TOKENS, "Output tokens of good answers.", value=self._tokens)

    def _window(self) -> Iterator[Metric]:
        latency = GaugeMetricFamily(
            names.LATENCY,
            f"Latency over the last {WINDOW_S:g} s, nearest rank.",
            labels=["measure", "quantile"],
        )
        good = [record for record in self._recent if record.outcome == "ok"]
        for measure, samples in MEASURES.items():
            known = sorted(value for record in good for value in samples(record) if value is not None)
            _add_quantiles(latency, known, [measure.removesuffix("_s")])
        yield latency
        delay = GaugeMetricFamily(names.SCHEDULE_DELAY, "How late requests were sent.", labels=["quantile"])
        _add_quantiles(
            delay, sorted(record.schedule_delay_s for record in self._recent if record.attempt == 0), []
        )
        yield delay
        failed, judged = failures(self._recent, stopped=not self._over())
        if judged:
            yield GaugeMetricFamily(
                names.ERROR_RATIO, f"Failed share over the last {WINDOW_S:g} s.", value=failed / judged
            )

    def _client(self) -> Iterator[Metric]:
        target = self._target()
        if target is not None:
            yield GaugeMetricFamily(
                names.TARGET_RATE,
                f"Requests a second that the plan wants now; of a trace, over the last {WINDOW_S:g} s.",
                value=target,
            )
        if self._health:
            yield from self._load_processes()

    def _over(self) -> bool:
        """Whether the plan's time is up; never known of one without a duration. What is cut before tells nothing."""
        planned = self._plan.arrival.duration_s
        if planned is None or self._first_due_s is None:
            return False
        return time.time() >= self._first_due_s + planned

    def _target(self) -> float | None:
        """None when the plan is over, of a closed loop, and before the client has said when it began."""
        arrival = self._plan.arrival
        if self._first_due_s is None or arrival.kind == "closed":
            return None
        at_s = time.time() - self._first_due_s
        if arrival.kind == "open":
            return level_at(arrival.segments, at_s)
        if self._trace is None:
            requests = itertools.islice(trace_of(arrival), self._plan.max_requests)
            self._trace = TraceRate(requests, WINDOW_S)
        return self._trace.at(at_s)

    def _load_processes(self) -> Iterator[Metric]:
        samples = list(self._health.values())
        sent = sum(sample["due_per_s"] for sample in samples)
        yield GaugeMetricFamily(
            names.SENT_RATE, "Requests a second that were begun, last sample.", value=sent
        )
        in_flight = sum(sample["in_flight"] for sample in samples)
        yield GaugeMetricFamily(names.IN_FLIGHT, "Requests not answered yet.", value=in_flight)
        cpu = GaugeMetricFamily(
            names.CLIENT_CPU, "CPU share of one core of a load process.", labels=["worker"]
        )
        lag = GaugeMetricFamily(names.CLIENT_LAG, "Worst event-loop lag, last sample.", labels=["worker"])
        for sample in samples:
            cpu.add_metric([str(sample["worker"])], sample["cpu_ratio"])
            if sample["lag_s"]:
                lag.add_metric([str(sample["worker"])], max(sample["lag_s"]))
        yield cpu
        yield lag


def _add_quantiles(family: GaugeMetricFamily, ordered: list[float], labels: list[str]) -> None:
    if ordered:
        for percent in _PERCENTS:
            family.add_metric([*labels, f"{percent / 100:g}"], percentile(ordered, percent))
