"""Retrievals as the client tells of them -> counters and histograms of their health, by tenant."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

from exporters.drift.wire import WireError
from slo.buckets import LATENCY_BOUNDS_SECONDS
from slo.names import drift as names

SCORE_BOUNDS = tuple(round(0.05 * step, 2) for step in range(-4, 21))
LENGTH_BOUNDS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
# Retrieval of a good index takes milliseconds, under the lowest bound of an engine's histogram.
DURATION_BOUNDS_SECONDS = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.15,
    0.2,
    *LATENCY_BOUNDS_SECONDS["request_duration"],
)


_MOST = 1e9  # neither a similarity, nor seconds, nor characters of a query


@dataclass(frozen=True)
class Retrieval:
    """One retrieval: similarities of what was found (best first or not), seconds, characters of the query."""

    scores: tuple[float, ...]
    seconds: float | None
    query_characters: int | None


def retrievals(document: Mapping[str, Any]) -> Iterator[Retrieval]:
    """Read {"retrievals": [{"scores": […], "seconds"?, "query_characters"?}, …]}; raises WireError."""
    items = document.get("retrievals")
    if not isinstance(items, list):
        raise WireError('no list `retrievals`; send {"retrievals": [{"scores": […], "seconds": …}, …]}')
    for at, one in enumerate(items):
        scores = one.get("scores") if isinstance(one, dict) else None
        if not isinstance(scores, list) or not all(_number(score) for score in scores):
            raise WireError(f"retrievals[{at}].scores: {scores!r:.200} is no list of finite numbers")
        seconds, characters = one.get("seconds"), one.get("query_characters")
        for key, value in (("seconds", seconds), ("query_characters", characters)):
            if value is not None and not (_number(value) and value >= 0):
                raise WireError(f"retrievals[{at}].{key}: {value!r:.200} is no number from 0")
        yield Retrieval(tuple(map(float, scores)), seconds, characters)


def _number(value: object) -> bool:
    """NaN is none, nor is what would make a sum infinite for good."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST


class RetrievalHealth:
    """The series; *low_score* is the best similarity under which a retrieval counts as poor."""

    def __init__(self, registry: CollectorRegistry, low_score: float) -> None:
        self._low = low_score
        tenant = [names.LABEL_TENANT]
        self._results = Counter(
            names.RETRIEVALS,
            f"Retrievals by what they found; low_score: the best similarity is under {low_score:g}.",
            [*tenant, names.LABEL_RESULT],
            registry=registry,
        )
        self._seconds = Histogram(
            names.RETRIEVAL_SECONDS, "Duration of retrievals, as the client measured it.", tenant,
            buckets=DURATION_BOUNDS_SECONDS, registry=registry,
        )  # fmt: skip
        self._top = Histogram(
            names.RETRIEVAL_TOP_SCORE,
            "Similarity of the best hit.",
            tenant,
            buckets=SCORE_BOUNDS,
            registry=registry,
        )
        self._mean = Histogram(
            names.RETRIEVAL_MEAN_SCORE, "Mean similarity over the hits.", tenant,
            buckets=SCORE_BOUNDS, registry=registry,
        )  # fmt: skip
        self._length = Histogram(
            names.RETRIEVAL_QUERY_LENGTH, "Length of queries, in characters.", tenant,
            buckets=LENGTH_BOUNDS, registry=registry,
        )  # fmt: skip
        self.expect("")

    def expect(self, tenant: str) -> None:
        """Show a tenant's counters from 0, so that its first poor retrieval is seen as one."""
        for result in names.RESULTS:
            self._results.labels(tenant, result)

    def observe(self, tenant: str, one: Retrieval) -> None:
        """Count a retrieval."""
        self.expect(tenant)
        result = "empty" if not one.scores else "low_score" if max(one.scores) < self._low else "ok"
        self._results.labels(tenant, result).inc()
        if one.scores:
            self._top.labels(tenant).observe(max(one.scores))
            self._mean.labels(tenant).observe(sum(one.scores) / len(one.scores))
        if one.seconds is not None:
            self._seconds.labels(tenant).observe(one.seconds)
        if one.query_characters is not None:
            self._length.labels(tenant).observe(one.query_characters)
