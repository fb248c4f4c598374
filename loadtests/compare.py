"""Runs (or rounds of runs) with names -> their figures side by side, each with a confidence interval.

Intervals of percentiles are distribution-free: the order statistics between which the true percentile lies with
95 % confidence (binomial, normal approximation). Intervals of rates are over rounds, by Student's t; with one
round there is none. The interval of an error ratio is Wilson's.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from loadtests.pairtest import t_quantile
from loadtests.records import RequestRecord, failures, percentile
from loadtests.report import MEASURES, rates
from loadtests.run import LoadResult

_Z95 = 1.959964
PERCENTILES = (("ttft_s", 50.0), ("ttft_s", 95.0), ("ttft_s", 99.0), ("e2e_s", 50.0), ("e2e_s", 95.0),
               ("e2e_s", 99.0), ("tpot_s", 50.0), ("tpot_s", 95.0), ("inter_chunk_gap_s", 99.0))  # fmt: skip
RATES = ("good_per_s", "output_tokens_per_s")


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its 95 % interval; None where nothing is known, or too little for an interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """One compared thing: its name, how many requests and rounds, its figures by row name, its raw samples."""

    name: str
    requests: int
    rounds: int
    figures: dict[str, Figure]
    samples: dict[str, list[float]]


def column(name: str, runs: Sequence[LoadResult]) -> Column:
    """All rounds of one build or setting as one column."""
    records = [record for run in runs for record in run.records if not record.will_retry]
    good = [record for record in records if record.outcome == "ok"]
    samples = {measure: _samples(good, measure) for measure in MEASURES}
    figures = {
        f"{measure} P{percent:g}": quantile(samples[measure], percent) for measure, percent in PERCENTILES
    }
    by_round = [rates(run) for run in runs]
    for rate in RATES:
        figures[rate] = mean([known for one in by_round if (known := one[rate]) is not None])
    figures["unanswered"] = Figure(float(sum(record.outcome == "unfinished" for record in records)))
    counted = [failures((r for r in run.records if not r.will_retry), stopped=run.stopped) for run in runs]
    figures["error_ratio"] = ratio(sum(failed for failed, _ in counted), sum(judged for _, judged in counted))
    return Column(name, len(records), len(runs), figures, samples)


def quantile(ordered: Sequence[float], percent: float) -> Figure:
    """Nearest-rank percentile of ascending samples, and the order statistics around it."""
    count, share = len(ordered), percent / 100
    if not count:
        return Figure(None)
    value = percentile(ordered, percent)
    spread = _Z95 * math.sqrt(count * share * (1 - share))
    low, high = math.floor(count * share - spread), math.ceil(count * share + spread)
    if low < 1 or high >= count:
        return Figure(value)
    return Figure(value, ordered[low - 1], ordered[high])


def mean(values: Sequence[float]) -> Figure:
    """Mean over rounds with Student's interval."""
    count = len(values)
    if not count:
        return Figure(None)
    middle = sum(values) / count
    if count < 2:
        return Figure(middle)
    deviation = math.sqrt(sum((value - middle) ** 2 for value in values) / (count - 1))
    half = t_quantile(0.975, count - 1) * deviation / math.sqrt(count)
    return Figure(middle, middle - half, middle + half)


def ratio(events: float, total: int) -> Figure:
    """Share of events with Wilson's interval; *events* need not be whole where *total* is what counts as evidence."""
    if not total:
        return Figure(None)
    share, z2 = events / total, _Z95**2
    middle = (share + z2 / (2 * total)) / (1 + z2 / total)
    half = _Z95 / (1 + z2 / total) * math.sqrt(share * (1 - share) / total + z2 / (4 * total**2))
    return Figure(share, max(0.0, middle - half), min(1.0, middle + half))


def differs(one: Figure, other: Figure) -> bool | None:
    """True when the intervals do not meet; None when one has none."""
    if one.low is None or one.high is None or other.low is None or other.high is None:
        return None
    return one.high < other.low or other.high < one.low


def _samples(good: Iterable[RequestRecord], measure: str) -> list[float]:
    return sorted(value for record in good for value in MEASURES[measure](record) if value is not None)
