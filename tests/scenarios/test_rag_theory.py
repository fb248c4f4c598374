"""Bounds of RAG and collector rows, by hand; slo.yaml's windows are 5 min, `for` 1 or 2 min, a group's interval 125 s."""

import pytest

from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.node_theory import NoTheory
from inferwatch.scenarios.row import Expected, Row
from inferwatch.scenarios.theory import Theory
from slo import spec as slo_spec

ROW = Row("row", Nothing(None), stage="rag", engines=0, cache_hit_before=0.9)
TICKET = 30 + 60 + 125
"""An evaluation, held for a minute, the interval of a known group."""


def bound(expected: Expected) -> float:
    """Fault to delivered notification."""
    return Theory(slo_spec.load()).seconds(ROW, expected, 60.0)


def test_a_service_that_is_down() -> None:
    """A scrape of 5 s and its timeout of 4, an evaluation of 5, held 15, a page waits 1."""
    assert bound(Expected("RagServiceDown")) == 9 + 5 + 15 + 1


def test_requests_that_fail() -> None:
    """All of 2 a second: half of 30 s is longer than ten failures take; a scrape, an evaluation, a page's second."""
    assert bound(Expected("RagRequestsFailing", events_per_second=2.0)) == 15 + 5 + 5 + 1


def test_few_requests_that_fail() -> None:
    """All of one in 4 s: ten failures take 40 s, longer than half of the window."""
    assert bound(Expected("RagRequestsFailing", events_per_second=0.25)) == 40 + 5 + 5 + 1


def test_a_slow_stage() -> None:
    """A twentieth of 300 s, the half second itself, spans sent, flushed and read in 15 s."""
    slow = Expected("RagStageSlow", {"stage": "retrieval"}, level=0.5)
    assert bound(slow) == pytest.approx(15 + 0.5 + 15 + TICKET)


def test_a_stage_within_its_promise_has_no_bound() -> None:
    """0.2 s are promised."""
    with pytest.raises(NoTheory, match="within the promise"):
        bound(Expected("RagStageSlow", {"stage": "retrieval"}, level=0.2))


def test_a_failing_stage() -> None:
    """A fifth fails and 0.02 may: a tenth of 300 s; 0.01 never crosses."""
    failing = Expected("RagStageFailing", {"stage": "rerank"}, level=0.2)
    assert bound(failing) == pytest.approx(30 + 15 + TICKET)
    with pytest.raises(NoTheory, match="never crosses"):
        bound(Expected("RagStageFailing", {"stage": "rerank"}, level=0.01))


def test_a_cache_that_knows_nothing() -> None:
    """From 0.9 to nothing passes the half of it after half of 300 s; held for 2 min."""
    collapsed = Expected("RagCacheHitCollapsed", {"level": "l1"}, level=0.0, healthy=0.9)
    assert bound(collapsed) == pytest.approx(150 + 5 + TICKET + 60)


def test_a_worse_version() -> None:
    """200 of each at 2 a second, 15 s of spans, recorded in 30 s, analysed in 60, read in 5, held for 5 min."""
    worse = Expected("RagVersionWorse", {"stage": "retrieval"}, events_per_second=2.0)
    assert bound(worse) == 100 + 15 + 30 + 60 + 5 + 30 + 300 + 125


def test_a_rate_must_be_said() -> None:
    """200 of each take for ever when nobody says how many come."""
    with pytest.raises(NoTheory, match="how many come"):
        bound(Expected("RagVersionWorse", {"stage": "retrieval"}))


def test_lost_spans() -> None:
    """10 s of start, two scrapes, 10 s until a trace is judged, 2 s of queue; not held; evaluation and group."""
    assert bound(Expected("SpansLost")) == 10 + 10 + 10 + 2 + 30 + 125


def test_a_queue_that_fills() -> None:
    """0.8 of 512 MiB at 150 spans of 60 × 250 bytes a second (2,250,000 bytes) are 190.9 s; then 10 + 2 + 5."""
    filled = 0.8 * 512 * 1024 * 1024 / 2_250_000
    assert bound(Expected("SpanQueueFilling")) == pytest.approx(filled + 17 + TICKET)
