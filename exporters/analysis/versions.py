"""Histograms of embedding versions -> the judged quantile of each with its interval, and their differences.

A quantile's interval needs no distribution: of n requests the ranks p ± z·√(p(1-p)/n) are read from the histogram
(Woodruff 1952). The interval of a difference joins those of both sides by the square-and-add rule (MOVER, Zou and
Donner 2008). Within a bucket requests are taken as even, as PromQL does; the bounds are the same for all versions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import NormalDist

from inferwatch.promapi import Prometheus
from slo.names import labels
from slo.names import rag as names
from slo.names import rag_records as records
from slo.rag import Rag

Key = tuple[str, str]
"""(service, stage)."""
Buckets = Sequence[tuple[float, float]]
"""(upper bound in seconds, requests up to it), rising; the last bound is +Inf."""


@dataclass(frozen=True)
class Interval:
    """An estimate in seconds between the bounds of its confidence interval."""

    estimate: float
    lower: float
    upper: float


@dataclass(frozen=True)
class Version:
    """One version's requests; *latency* is None where there are too few, or they end over the last bound."""

    requests: float
    in_use: bool
    latency: Interval | None


def quantile(buckets: Buckets, ratio: float) -> float | None:
    """Seconds that *ratio* of the requests stay within; None: more than the highest finite bound, or no request."""
    total = buckets[-1][1]
    rank, below, from_bound = ratio * total, 0.0, 0.0
    if total <= 0:
        return None
    for bound, count in buckets:
        if count >= rank:
            if math.isinf(bound):
                return None
            share = (rank - below) / (count - below) if count > below else 1.0
            return from_bound + share * (bound - from_bound)
        below, from_bound = count, bound
    return None


def interval(buckets: Buckets, ratio: float, confidence: float) -> Interval | None:
    """The quantile with its interval; None where one of the three is over the highest finite bound."""
    total = buckets[-1][1]
    if total <= 0:
        return None
    spread = NormalDist().inv_cdf((1 + confidence) / 2) * math.sqrt(ratio * (1 - ratio) / total)
    low, middle, high = (
        quantile(buckets, min(max(r, 0.0), 1.0)) for r in (ratio - spread, ratio, ratio + spread)
    )
    if low is None or middle is None or high is None:
        return None
    return Interval(middle, low, high)


def difference(own: Interval, other: Interval) -> Interval:
    """How many seconds *own* is over *other*, for independent requests."""
    estimate = own.estimate - other.estimate
    down = math.hypot(own.estimate - own.lower, other.upper - other.estimate)
    up = math.hypot(own.upper - own.estimate, other.estimate - other.lower)
    return Interval(estimate, estimate - down, estimate + up)


def differences(found: Mapping[str, Version]) -> dict[tuple[str, str], Interval]:
    """(version, than) -> difference, for every ordered pair whose latencies are known."""
    known = {name: one.latency for name, one in found.items() if one.latency is not None}
    return {(a, b): difference(known[a], known[b]) for a, b in permutations(known, 2)}


def compare(counts: Mapping[str, Buckets], recent: Mapping[str, float], rag: Rag) -> dict[str, Version]:
    """Judge the versions of one service and stage, at most `most` of them: those with most requests."""
    of_all = sorted(counts, key=lambda name: (-counts[name][-1][1], name))[: rag.versions.most]
    found = {}
    for name in sorted(of_all):
        requests = counts[name][-1][1]
        enough = requests >= rag.versions.min_requests
        latency = interval(counts[name], rag.judged_quantile, rag.versions.confidence) if enough else None
        found[name] = Version(requests, recent.get(name, 0.0) > 0, latency)
    return found


def read(prometheus: Prometheus, rag: Rag, *, step_seconds: int, at: float) -> dict[Key, dict[str, Version]]:
    """Return the versions of each service and stage over the lookback before *at*.

    *step_seconds*: between two samples of the recorded rates. Raises PromError when Prometheus cannot be asked.
    """
    by = f"{labels.SERVICE}, {names.LABEL_STAGE}, {names.LABEL_VERSION}"
    past = f"sum by ({by}, le) (sum_over_time({records.VERSION_BUCKET}[{rag.versions.lookback}s])) * {step_seconds}"
    now = f'sum by ({by}) (sum_over_time({records.VERSION_BUCKET}{{le="+Inf"}}[{rag.window}s]))'
    counts: dict[Key, dict[str, list[tuple[float, float]]]] = {}
    for sample in prometheus.query(past, at=at):
        key, version = _of(sample.labels)
        bound = float(sample.labels.get("le", "inf").replace("+Inf", "inf"))
        counts.setdefault(key, {}).setdefault(version, []).append((bound, sample.value))
    recent: dict[Key, dict[str, float]] = {}
    for sample in prometheus.query(now, at=at):
        key, version = _of(sample.labels)
        recent.setdefault(key, {})[version] = sample.value
    return {
        key: compare(
            {v: sorted(b) for v, b in versions.items() if math.isinf(max(b)[0])}, recent.get(key, {}), rag
        )
        for key, versions in sorted(counts.items())
    }


def _of(found: Mapping[str, str]) -> tuple[Key, str]:
    key = (found.get(labels.SERVICE, ""), found.get(names.LABEL_STAGE, ""))
    return key, found.get(names.LABEL_VERSION, "")
