"""Outcomes of canary requests -> the `llm_canary_*` series of one target and of all."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from exporters.canary.targets import Target
from slo.buckets import LATENCY_BOUNDS_SECONDS
from slo.names import canary as names

Result = Literal["ok", "timeout", "refused", "http", "error_in_stream", "malformed", "no_token", "no_model"]

_HTTP_CODES = (301, 302, 303, 307, 308, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504)
_ANSWERED: tuple[Result, ...] = ("ok", "error_in_stream", "malformed", "no_token", "timeout")
_NOT_ANSWERED: tuple[Result, ...] = ("refused", "timeout", "malformed", "no_model", "http")
OUTCOMES: tuple[tuple[Result, str], ...] = (
    *((result, "200") for result in _ANSWERED),
    *((result, "") for result in _NOT_ANSWERED),
    *(("http", str(code)) for code in _HTTP_CODES),
    ("http", "other"),
)
"""Every result with every code it can have: all are exposed from the start, at 0."""

# An idle engine answers one token in tens of milliseconds, under the engine histogram's lowest bound.
_FINE_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2)
DURATION_BOUNDS_SECONDS = (*_FINE_BOUNDS, *LATENCY_BOUNDS_SECONDS["request_duration"])
FIRST_TOKEN_BOUNDS_SECONDS = LATENCY_BOUNDS_SECONDS["time_to_first_token"]


@dataclass(frozen=True)
class Outcome:
    """One request as its client saw it; times in seconds, `detail` is for the log.

    Tokens are the server's own count, None where it gave none.
    `code`: the status of the completion's answer, None where the engine never answered that request
    (and so did not count it either): rules subtract what the canary caused by it.
    """

    result: Result
    code: int | None = None
    duration_seconds: float | None = None
    first_token_seconds: float | None = None
    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    detail: str = ""

    @property
    def key(self) -> tuple[Result, str]:
        """The pair of label values it is counted under."""
        if self.code is None:
            return self.result, ""
        if self.result == "http":
            return self.result, str(self.code) if self.code in _HTTP_CODES else "other"
        return self.result, "200"


class Histogram:
    """A cumulative histogram over fixed bounds, in seconds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds


def _zeros() -> dict[tuple[Result, str], int]:
    return dict.fromkeys(OUTCOMES, 0)


def _durations() -> Histogram:
    return Histogram(DURATION_BOUNDS_SECONDS)


def _first_tokens() -> Histogram:
    return Histogram(FIRST_TOKEN_BOUNDS_SECONDS)


@dataclass
class Record:
    """What is known of one target. Times are Unix seconds, None: not yet."""

    labels: dict[str, str]
    model: str | None = None
    requests: dict[tuple[Result, str], int] = field(default_factory=_zeros)
    durations: Histogram = field(default_factory=_durations)
    first_tokens: Histogram = field(default_factory=_first_tokens)
    prompt_tokens: int = 0
    generation_tokens: int = 0
    last_attempt: float | None = None
    last_success: float | None = None
    success: bool | None = None
    in_flight: int = 0
    failures_in_a_row: int = 0
    backoff_seconds: float = 0.0

    def observe(self, outcome: Outcome, at: float) -> None:
        """Count an outcome that was complete at *at* (Unix seconds)."""
        self.requests[outcome.key] += 1
        self.success = outcome.result == "ok"
        if not self.success:
            self.failures_in_a_row += 1
            return
        self.failures_in_a_row = 0
        self.last_success = at
        if outcome.duration_seconds is not None:
            self.durations.observe(outcome.duration_seconds)
        self.prompt_tokens += outcome.prompt_tokens or 0
        self.generation_tokens += outcome.generation_tokens or 0
        if outcome.first_token_seconds is not None:
            self.first_tokens.observe(outcome.first_token_seconds)

    def serve_model(self, model: str) -> None:
        """Take the model's name; another model than before begins new counters."""
        if self.model is not None and self.model != model:
            self.requests, self.durations, self.first_tokens = _zeros(), _durations(), _first_tokens()
            self.prompt_tokens = self.generation_tokens = 0
        self.model = model

    def series_labels(self) -> dict[str, str]:
        """The labels of every series of the target; the file's own `model` wins."""
        known = {"model": self.model} if self.model else {}
        return known | self.labels


_TOKENS = (
    (
        names.PROMPT_TOKENS,
        "prompt_tokens",
        "Prompt tokens that successful canary requests caused, by the server's usage.",
    ),
    (
        names.GENERATION_TOKENS,
        "generation_tokens",
        "Tokens that successful canary requests caused, by the server's usage.",
    ),
)

_GAUGES = (
    (
        names.SUCCESS,
        "success",
        "Whether the last finished canary request succeeded; absent before the first.",
    ),
    (names.LAST_SUCCESS, "last_success", "Unix time of the last success; absent before the first."),
    (names.LAST_ATTEMPT, "last_attempt", "Unix time when the last canary request was begun."),
    (names.IN_FLIGHT, "in_flight", "Canary requests being answered now: 0 or 1."),
    (names.BACKOFF, "backoff_seconds", "Wait in force because of failures in a row; 0: none."),
)


class CanaryCollector(Collector):
    """All targets' records as Prometheus families; *records* is asked at each scrape."""

    def __init__(self, records: Callable[[], Mapping[Target, Record]]) -> None:
        self._records = records

    def collect(self) -> Iterator[Metric]:
        records = [(record, record.series_labels()) for record in self._records().values()]
        yield _requests(records)
        yield _histogram(
            names.REQUEST_DURATION,
            "Whole duration of successful canary requests, as the client saw it.",
            ((record.durations, labels) for record, labels in records),
        )
        yield _histogram(
            names.TIME_TO_FIRST_TOKEN,
            "Time from sending a canary request to its first token, of successful ones.",
            ((record.first_tokens, labels) for record, labels in records),
        )
        for name, attribute, documentation in _TOKENS:
            family = Metric(name.removesuffix("_total"), documentation, "counter")
            for record, labels in records:
                family.add_sample(name, labels, float(getattr(record, attribute)))
            yield family
        for name, attribute, documentation in _GAUGES:
            family = Metric(name, documentation, "gauge")
            for record, labels in records:
                value = getattr(record, attribute)
                if value is not None:
                    family.add_sample(name, labels, float(value))
            yield family


def _requests(records: Iterable[tuple[Record, dict[str, str]]]) -> Metric:
    documentation = "Canary requests by what became of them and the HTTP status code, empty where none came."
    family = Metric(names.REQUESTS.removesuffix("_total"), documentation, "counter")
    for record, labels in records:
        for (result, code), count in record.requests.items():
            family.add_sample(names.REQUESTS, labels | {"result": result, "code": code}, count)
    return family


def _histogram(
    name: str, documentation: str, histograms: Iterable[tuple[Histogram, dict[str, str]]]
) -> Metric:
    family = Metric(name, documentation, "histogram")
    for histogram, labels in histograms:
        running = 0
        for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
            running += count
            family.add_sample(f"{name}_bucket", labels | {"le": _le(bound)}, running)
        family.add_sample(f"{name}_count", labels, running)
        family.add_sample(f"{name}_sum", labels, histogram.total)
    return family


def _le(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(float(bound))
