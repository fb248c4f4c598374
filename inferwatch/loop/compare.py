"""Two /probe texts and the client's records -> do counts match exactly, do quantiles lie within one bucket.

The truth is what the client saw; the server's numbers are counter deltas between two quiet points.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from slo.names import canary, engine

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Snapshot:
    """All samples of one /probe answer: name -> labels -> value."""

    samples: Mapping[str, Mapping[Labels, float]]

    def total(self, name: str, **labels: str) -> float:
        """Sum of all samples of that name that carry these labels; KeyError when the name is absent."""
        wanted = set(labels.items())
        return sum(v for key, v in self.samples[name].items() if wanted <= set(key))

    def buckets(self, family: str) -> dict[float, float]:
        """Cumulative counts by upper bound, summed over all other labels."""
        out: dict[float, float] = {}
        for key, value in self.samples[f"{family}_bucket"].items():
            bound = float(dict(key)["le"])
            out[bound] = out.get(bound, 0.0) + value
        return dict(sorted(out.items()))


def parse(text: str) -> Snapshot:
    """Read an exposition text.

    Raises ValueError when it is none.
    """
    samples: dict[str, dict[Labels, float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = tuple(sorted(sample.labels.items()))
            samples.setdefault(sample.name, {})[key] = sample.value
    return Snapshot(samples)


@dataclass(frozen=True)
class ClientTruth:
    """What clients saw between the two points: counts from the server's own usage, latencies in seconds."""

    finished: int
    prompt_tokens: int
    generation_tokens: int
    ttft_seconds: Sequence[float]
    e2e_seconds: Sequence[float]


@dataclass(frozen=True)
class Count:
    """One compared count; *slack* is what canary requests that were given up may have added on the server."""

    what: str
    client: float
    server: float
    slack: float = 0.0

    @property
    def matches(self) -> bool:
        return self.client <= self.server <= self.client + self.slack


def delta(before: Snapshot, after: Snapshot, name: str) -> float:
    """Increase of a counter between the points.

    Raises ValueError when it fell: the engine restarted in between.
    """
    change = after.total(name) - before.total(name)
    if change < 0:
        raise ValueError(f"{name} fell by {-change}: the engine restarted between the two points")
    return change


@dataclass(frozen=True)
class Point:
    """Engine and canary at one quiet point."""

    engine: Snapshot
    canary: Snapshot


def counts(before: Point, after: Point, truth: ClientTruth) -> list[Count]:
    """
    Compare requests and tokens, the canary's own left out; exact in a phase with no abort, hang or kill.

    A canary request that timed out is an abort: the engine may have counted it whole, in part or not at all.
    """
    asked = delta(before.canary, after.canary, canary.REQUESTS)
    ok = after.canary.total(canary.REQUESTS, result="ok") - before.canary.total(canary.REQUESTS, result="ok")
    prompt = delta(before.canary, after.canary, canary.PROMPT_TOKENS)
    generated = delta(before.canary, after.canary, canary.GENERATION_TOKENS)
    given_up = asked - ok
    prompt_each = prompt / ok if ok else 0.0
    first_tokens = f"{engine.TIME_TO_FIRST_TOKEN_SECONDS}_count"
    return [
        Count(what, client, delta(before.engine, after.engine, name) - own, given_up * each)
        for what, client, name, own, each in (
            ("requests finished", truth.finished, engine.REQUESTS_TOTAL, ok, 1.0),
            ("first tokens", len(truth.ttft_seconds), first_tokens, ok, 1.0),
            ("prompt tokens", truth.prompt_tokens, engine.PROMPT_TOKENS_TOTAL, prompt, prompt_each),
            ("generation tokens", truth.generation_tokens, engine.GENERATION_TOKENS_TOTAL, generated, 1.0),
        )
    ]


@dataclass(frozen=True)
class QuantilePair:
    """One quantile as client and server have it; buckets apart is 0 when both lie in the same bucket."""

    what: str
    quantile: float
    client_seconds: float
    server_upper_bound_seconds: float
    buckets_apart: int

    @property
    def within_one_bucket(self) -> bool:
        return self.buckets_apart <= 1


def nearest_rank(values: Sequence[float], quantile: float) -> float:
    """The smallest value with at least that share of all values at or under it."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)]


def quantile_pairs(
    what: str, family: str, before: Snapshot, after: Snapshot, client_seconds: Sequence[float]
) -> list[QuantilePair]:
    """Compare P50, P95 and P99 by the bucket each falls in.

    Raises ValueError when the server saw nothing between the points.
    """
    start = before.buckets(family)
    grown = {bound: count - start.get(bound, 0.0) for bound, count in after.buckets(family).items()}
    bounds, cumulative = list(grown), list(grown.values())
    if not cumulative or cumulative[-1] <= 0:
        raise ValueError(f"{family} did not grow between the two points: nothing to compare")
    pairs = []
    for quantile in (0.5, 0.95, 0.99):
        seen = nearest_rank(client_seconds, quantile)
        server_index = bisect_left(cumulative, math.ceil(quantile * cumulative[-1]))
        client_index = bisect_left(bounds, seen)
        pairs.append(
            QuantilePair(what, quantile, seen, bounds[server_index], abs(server_index - client_index))
        )
    return pairs
