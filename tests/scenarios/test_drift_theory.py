"""Bounds of rows of embeddings, by hand; rules are read every 30 s, a known group waits 125 s."""

import pytest

from inferwatch.scenarios import derive
from inferwatch.scenarios.drift_faults import OtherEmbeddings, WithoutReference
from inferwatch.scenarios.drift_rows import DRIFT
from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.drift_theory import part_seconds
from inferwatch.scenarios.node_theory import NoTheory
from inferwatch.scenarios.row import Expected, Fault, Row
from inferwatch.scenarios.theory import Theory
from slo import spec as slo_spec

JUDGED = 15 + 1 + 1 + 5
"""Judged every 15 s and within one, sent every second, scraped every 5 s."""
TOLD = 30 + 30 + 125
"""An evaluation, held for 30 s, the interval of a known group."""
WARNED = 30 + 300 + 125
"""The same, held for 5 min."""


def bound(fault: Fault, expected: Expected, lead: float = 60.0, before: float = 0.0) -> float:
    """Fault to delivered notification of a row that was healthy for *lead* seconds."""
    row = Row("row", fault, (expected,), stage="drift", sent=Sent(), latency_before_seconds=before)
    spec = derive.staged(slo_spec.load(), (row,), (row,))
    return Theory(spec).seconds(row, expected, lead)


def test_part_of_a_window_that_is_full_or_not() -> None:
    """A fifth of 900 s; of 60 s that came before, 15 more are a fifth of all."""
    assert part_seconds(900, 0.2, 9000) == pytest.approx(180)
    assert part_seconds(900, 0.2, 60) == pytest.approx(15)


def test_drift_alone() -> None:
    """A tenth of what came is new after 60/9 s."""
    assert bound(OtherEmbeddings(Sent(shifted=1.0)), Expected("LatencyOrDriftWarning")) == pytest.approx(
        60 / 9 + JUDGED + WARNED
    )


def test_half_as_much_drift_takes_longer() -> None:
    """With every second vector new, a tenth of the window is when a fifth of it came since: 15 s after 60."""
    half = OtherEmbeddings(Sent(shifted=0.5))
    assert bound(half, Expected("LatencyOrDriftWarning")) == pytest.approx(15 + JUDGED + WARNED)
    with pytest.raises(NoTheory, match="never crosses"):
        bound(OtherEmbeddings(Sent(shifted=0.1)), Expected("LatencyOrDriftWarning"))


def test_slow_retrievals_alone() -> None:
    """A twentieth of 300 s, a second until they are sent and a scrape; their 2 s are over 1.5 × 0.5 s."""
    slow = OtherEmbeddings(Sent(retrieval_seconds=2.0))
    assert bound(slow, Expected("LatencyOrDriftWarning", level=2.0)) == pytest.approx(15 + 6 + WARNED)
    with pytest.raises(NoTheory, match=r"0\.7 s is not over 0\.75 s"):
        bound(slow, Expected("LatencyOrDriftWarning", level=0.7))


def test_both_wait_for_the_later() -> None:
    """15 s, an answer of 4 s, 6 s, and two records every 30 s before it; a page waits a second."""
    both = OtherEmbeddings(Sent(shifted=1.0), "slow_decode", {"factor": 4})
    found = bound(both, Expected("LatencyAndDriftCritical", level=4.0), before=1.0)
    assert found == pytest.approx(15 + 4 + 6 + 60 + 30 + 30 + 1)
    late = bound(both, Expected("LatencyAndDriftCritical", level=4.0), 7200.0, before=1.0)
    assert late == pytest.approx(90 + JUDGED + 30 + 30 + 1)


def test_an_answer_that_nothing_is_held_against_has_no_bound() -> None:
    """The row states no latency of the hour before."""
    with pytest.raises(NoTheory, match="held against"):
        bound(OtherEmbeddings(Sent(shifted=1.0)), Expected("LatencyAndDriftCritical", level=4.0))


def test_a_swapped_model() -> None:
    """Its first batch is judged."""
    assert bound(OtherEmbeddings(Sent(model="new")), Expected("EmbeddingModelSwapped")) == JUDGED + TOLD


def test_refused_vectors() -> None:
    """10 of 25 are two fifths, so a twentieth of all is there when an eighth is new: 60/7 s; held for a minute."""
    refused = OtherEmbeddings(Sent(unusable=10))
    assert bound(refused, Expected("EmbeddingVectorsRejected")) == pytest.approx(60 / 7 + 6 + TOLD + 30)


def test_poor_retrievals() -> None:
    """A fifth at four fifths is a quarter of all: 20 s after 60; held for 5 min."""
    poor = OtherEmbeddings(Sent(poor=0.8))
    assert bound(poor, Expected("RetrievalPoor")) == pytest.approx(20 + 6 + 30 + 300 + 125)


def test_a_forgotten_reference_is_held_a_minute() -> None:
    """10 s of start, a verdict, and the hold of the stage in place of half an hour."""
    assert bound(WithoutReference(), Expected("EmbeddingDriftUnknown")) == 10 + JUDGED + 30 + 60 + 125


@pytest.mark.parametrize("lead", [60.0, 300.0])
def test_the_page_of_the_budget_comes_due_while_the_critical_one_fires(lead: float) -> None:
    """Later than the critical page may come, so that it cannot be first; and before the fault is mended."""
    row = next(one for one in DRIFT if one.name == "drift-slow")
    theory = Theory(derive.staged(slo_spec.load(), DRIFT, DRIFT))
    critical = theory.seconds(row, row.fires[0], lead)
    budget = theory.seconds(row, Expected("LatencyBurnFast", {"sloth_slo": "time-per-output-token"}), lead)
    assert 1.25 * critical < budget < row.fault_seconds
