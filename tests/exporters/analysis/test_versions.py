"""Embedding versions held against each other: intervals by hand, and a case where few and very many mislead."""

import json
import math
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pytest

from exporters.analysis.versions import (
    Interval,
    Version,
    compare,
    difference,
    differences,
    interval,
    quantile,
    read,
)
from inferwatch.promapi import Sample
from slo.names import rag as names
from slo.spec import load

RAG = load().rag
A64 = Path(__file__).resolve().parents[3] / "tests" / "fixtures" / "drift" / "A64"
INF = math.inf


def test_a_quantile_is_read_as_promql_reads_it() -> None:
    """Of 10: 4 within 1 s, 6 more within 2 s. Half: 1 + (5 - 4) / 6. All in the last bucket: not known."""
    buckets = [(1.0, 4.0), (2.0, 10.0), (INF, 10.0)]

    assert quantile(buckets, 0.5) == pytest.approx(1 + 1 / 6)
    assert quantile(buckets, 0.4) == 1.0
    assert quantile([(1.0, 4.0), (INF, 10.0)], 0.5) is None
    assert quantile([(1.0, 0.0), (INF, 0.0)], 0.5) is None


def test_an_interval_reads_the_ranks_beside_the_quantile() -> None:
    """400 spread evenly over 1 s: √(0.95 × 0.05 / 400) = 0.010897, times 1.959964 is 0.021358."""
    found = interval([(0.5, 200.0), (0.9, 360.0), (1.0, 400.0), (INF, 400.0)], 0.95, 0.95)

    assert found is not None
    assert found.estimate == pytest.approx(0.95)
    assert found.lower == pytest.approx(0.95 - 0.021358, abs=1e-6)
    assert found.upper == pytest.approx(0.95 + 0.021358, abs=1e-6)


def test_an_interval_that_leaves_the_scale_is_unknown() -> None:
    """The P95 lies under the highest bound, its upper rank (97.1 %) over it: 97 % are within."""
    assert interval([(0.9, 360.0), (1.0, 388.0), (INF, 400.0)], 0.95, 0.95) is None


def test_a_difference_joins_both_intervals() -> None:
    """5 in (2, 9) less 3 in (-1, 4.5): down √(3² + 1.5²), up √(4² + 4²)."""
    found = difference(Interval(5, 2, 9), Interval(3, -1, 4.5))

    assert found.estimate == 2
    assert found.lower == pytest.approx(2 - math.sqrt(11.25))
    assert found.upper == pytest.approx(2 + math.sqrt(32))


def test_each_pair_is_told_both_ways_and_the_unknown_not_at_all() -> None:
    """v2 less v1 is the other way round v1 less v2, bounds changed over."""
    one = Version(300, True, Interval(0.1, 0.09, 0.12))
    two = Version(300, True, Interval(0.2, 0.19, 0.22))
    found = differences({"v1": one, "v2": two, "v3": Version(8, True, None)})

    assert set(found) == {("v1", "v2"), ("v2", "v1")}
    assert found["v2", "v1"].estimate == pytest.approx(0.1)
    assert found["v1", "v2"].lower == pytest.approx(-found["v2", "v1"].upper)


def histogram(seconds: list[float]) -> list[tuple[float, float]]:
    """Latencies as the collector would count them."""
    return [
        *((b, float(sum(s <= b for s in seconds))) for b in names.BOUNDS_SECONDS),
        (INF, float(len(seconds))),
    ]


def latencies(file: str, coordinate: int) -> list[float]:
    """One coordinate of the case's numbers as latencies around 0.1 s: a standard deviation is about 30 %."""
    rows = json.loads((A64 / file).read_text(encoding="utf-8"))
    return [0.1 * math.exp(0.3 * row[coordinate]) for row in rows]


def worse(found: dict[tuple[str, str], Interval], than: Version) -> bool:
    """What the alert RagVersionWorse asks: the whole interval over a tenth of the other's quantile."""
    assert than.latency is not None
    return found["new", "old"].lower > 0.1 * than.latency.estimate


def judged(new: list[tuple[float, float]], old: list[tuple[float, float]]) -> dict[str, Version]:
    """Two versions in use."""
    return compare({"new": new, "old": old}, {"new": 1.0, "old": 1.0}, RAG)


def shifted_coordinate() -> int:
    """The one coordinate whose mean moved by about a standard deviation."""
    reference, current = (
        json.loads((A64 / name).read_text(encoding="utf-8"))
        for name in ("reference_200.json", "current_shifted_200.json")
    )
    moved = [
        abs(sum(r[i] for r in current) / len(current) - sum(r[i] for r in reference) / len(reference))
        for i in range(len(reference[0]))
    ]
    return moved.index(max(moved))


def test_two_draws_of_the_same_are_not_worse_and_a_shift_of_one_deviation_is() -> None:
    """A64 with 200 each: the same distribution, and one that is 35 % (e^0.3) slower."""
    at = shifted_coordinate()
    old = histogram(latencies("reference_200.json", at))
    same = judged(histogram(latencies("current_same_200.json", at)), old)
    shifted = judged(histogram(latencies("current_shifted_200.json", at)), old)

    assert not worse(differences(same), same["old"])
    found = differences(same)["new", "old"]
    assert found.lower < 0 < found.upper
    assert worse(differences(shifted), shifted["old"])


def test_eight_requests_are_no_verdict() -> None:
    """A64: not enough data is neither a difference of 0 nor an interval."""
    found = judged(histogram(latencies("current_8.json", 0)), histogram(latencies("reference_200.json", 0)))

    assert (found["new"].requests, found["new"].latency) == (8, None)
    assert differences(found) == {}


def test_very_many_requests_make_a_negligible_difference_certain_and_not_worse() -> None:
    """A64: half a million each, a hundredth of a deviation apart, which is 0.3 % of the latency."""
    case = json.loads((A64 / "huge_case.json").read_text(encoding="utf-8"))

    def normal(shift: float, n: int) -> list[tuple[float, float]]:
        def within(bound: float) -> float:
            return n * NormalDist(shift).cdf(math.log(bound / 0.1) / 0.3)

        return [*((b, within(b)) for b in names.BOUNDS_SECONDS), (INF, float(n))]

    found = judged(normal(case["mean_shift_in_sd"], case["n_cur"]), normal(0.0, case["n_ref"]))
    apart = differences(found)["new", "old"]

    assert 0 < apart.lower < apart.estimate < 0.001
    assert not worse(differences(found), found["old"])


def test_only_so_many_versions_are_held_against_each_other() -> None:
    """Four of six, those with most requests; of the others nobody made series."""
    counts = {f"v{n}": [(1.0, 200.0 + n), (INF, 200.0 + n)] for n in range(6)}

    assert list(compare(counts, {}, RAG)) == ["v2", "v3", "v4", "v5"]


class Prometheus:
    """Answers the two questions that are asked, and remembers them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def query(self, expr: str, *, at: float) -> list[Sample]:
        """v1: 500 requests, in use; v2: 100, not now; v3: no +Inf bucket, which is no histogram."""
        self.asked.append(expr)

        def sample(version: str, value: float, **more: str) -> Sample:
            return Sample({"service": "rag", "stage": "request", "version": version, **more}, at, value)

        if 'le="+Inf"' in expr:
            return [sample("v1", 2.0), sample("v2", 0.0)]
        return [
            sample("v1", 500.0, le="+Inf"),
            sample("v1", 500.0, le="2"),
            sample("v1", 0.0, le="1"),
            sample("v2", 100.0, le="+Inf"),
            sample("v2", 100.0, le="1"),
            sample("v3", 100.0, le="1"),
        ]


def test_prometheus_is_asked_for_the_lookback_and_for_now() -> None:
    """Rates every 30 s over 6 h are counts; those of the last 5 min say what is in use."""
    asked: Any = Prometheus()
    found = read(asked, RAG, step_seconds=30, at=1000.0)

    (versions,) = found.values()
    assert list(found) == [("rag", "request")]
    assert (versions["v1"].requests, versions["v1"].in_use) == (500, True)
    assert versions["v1"].latency is not None
    assert versions["v1"].latency.estimate == pytest.approx(1.95)
    assert versions["v2"] == Version(100, False, None)
    assert "v3" not in versions
    assert "[21600s])) * 30" in asked.asked[0] and "[300s]" in asked.asked[1]
