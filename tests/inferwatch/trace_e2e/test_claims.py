"""What the end-to-end run claims of traces: each claim can fail, and says why."""

import dataclasses
import math

import pytest

from inferwatch.trace_e2e import claims
from inferwatch.trace_e2e.claims import Key, Measured
from inferwatch.trace_e2e.counted import engine_stages, span_metrics
from inferwatch.trace_e2e.jaeger import Span, spans_of

STAGES = ["receive", "embedding", "retrieval", "rerank", "assemble", "generate", "respond"]


def _span(span_id, parent, service, name="x", stage="", milliseconds=10, **tags):
    found = {"rag.stage": stage, **tags} if stage else tags
    return Span(span_id, parent, service, name, 0, milliseconds * 1000, found)


def _trace():
    stages = [_span(f"s{n}", "server", "rag", stage=stage) for n, stage in enumerate(STAGES)]
    return [
        _span("client", "", "client", milliseconds=75),
        _span("server", "client", "rag", milliseconds=72),
        *stages,
        _span("engine", "s5", "vllm", "llm_request"),
    ]


def test_a_whole_trace_is_connected_and_its_seven_stages_add_up():
    """7 × 10 ms of stages beside 75 ms of the client are a fifteenth apart."""
    assert claims.disconnected(_trace(), "client") == ""
    assert claims.stage_sum_seconds(_trace()) == pytest.approx(0.07)
    assert claims.apart(0.07, 0.075) == pytest.approx(1 / 15)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (lambda t: [*t, t[0]], "stands twice"),
        (lambda t: [dataclasses.replace(s, parent="gone") if s.span_id == "engine" else s for s in t], "not in the trace"),
        (lambda t: t[1:], "has a parent that is not in the trace"),
        (lambda t: [*t, _span("other", "", "vllm")], "roots are"),
        (lambda t: t[:-1], "services are"),
        (lambda t: [s for s in t if s.stage != "rerank"], "stages are"),
        (lambda t: [dataclasses.replace(s, parent="server") if s.span_id == "engine" else s for s in t], "under the generate"),
    ],
)  # fmt: skip
def test_a_trace_that_is_not_whole_says_why(broken, why):
    """Spans lost, doubled, unparented, hung under the wrong one."""
    assert why in claims.disconnected(broken(_trace()), "client")


def test_another_clients_trace_is_not_ours():
    """The root must be the span that this client began."""
    assert "roots are" in claims.disconnected(_trace(), "somebody")


BOUNDS = (0.01, 0.1)


def test_spans_are_counted_into_the_buckets_they_belong_to():
    """10 ms lies in the bucket of 0.01; two of 50 ms in that of 0.1; 200 ms above both."""
    spans = [
        _span(str(n), "", "rag", stage="rerank", milliseconds=ms, **{"span.kind": "internal"})
        for n, ms in enumerate((10, 50, 50, 200))
    ]
    key = Key("rerank", "SPAN_KIND_INTERNAL", False)
    made = claims.measure([*spans, _span("v", "", "vllm")], "rag", BOUNDS)
    assert made.keys() == {key}
    assert made[key].count == 4
    assert made[key].seconds == pytest.approx(0.31)
    assert made[key].buckets == {0.01: 1, 0.1: 3, math.inf: 4}


@pytest.mark.parametrize(
    ("counted", "says"),
    [
        (Measured(3, 0.31, {0.01: 1, 0.1: 3, math.inf: 4}), "4 spans, 3 counted"),
        (Measured(4, 0.32, {0.01: 1, 0.1: 3, math.inf: 4}), "0.310000 s in spans, 0.320000 s counted"),
        (Measured(4, 0.31, {0.01: 1, 0.1: 2, math.inf: 4}), "buckets differ at [0.1]"),
        (None, "only once"),
    ],
)
def test_a_difference_between_metrics_and_spans_is_told(counted, says):
    """Counts, sums and buckets, or a key that one side lacks."""
    key = Key("rerank", "SPAN_KIND_INTERNAL", False)
    wanted = {key: Measured(4, 0.31, {0.01: 1, 0.1: 3, math.inf: 4})}
    assert claims.differing(wanted, wanted) == []
    assert says in claims.differing(wanted, {} if counted is None else {key: counted})[0]


def test_a_span_that_jaeger_cut_down_to_a_bound_may_lie_above_it():
    """10 ms by Jaeger may be 10.0003 ms: its bucket is 0.01 or the next; a second one apart is a difference."""
    span = _span("1", "", "rag", stage="rerank", milliseconds=10, **{"span.kind": "internal"})
    wanted = claims.measure([span], "rag", BOUNDS)
    (key,) = wanted
    for below, same in ((1, True), (0, True), (2, False), (-1, False)):
        counted = {key: Measured(1, 0.01, {0.01: below, 0.1: 1, math.inf: 1})}
        assert (claims.differing(wanted, counted) == []) is same
    late = {key: Measured(1, 0.01, {0.01: 1, 0.1: 0, math.inf: 1})}
    assert "buckets differ at [0.1]" in claims.differing(wanted, late)[0]


def test_the_engines_readings_must_be_counted_to_the_sum():
    """Two spans with 0.1 and 0.2 s of queue; the other stages are on no span and counted nowhere."""
    spans = [
        _span(str(n), "", "vllm", "llm_request", **{"gen_ai.latency.time_in_queue": seconds})
        for n, seconds in enumerate((0.1, 0.2))
    ]
    assert claims.differing_engine(spans, {"queue": (2.0, 0.3)}) == []
    assert "counted 2 and 0.400000" in claims.differing_engine(spans, {"queue": (2.0, 0.4)})[0]
    assert "counted 0 and" in claims.differing_engine(spans, {})[0]


class FakePrometheus:
    """Answers a query by the metric in it."""

    def __init__(self, answers):
        self._answers = answers

    def query(self, expr):
        return next((samples for metric, samples in self._answers.items() if f"({metric}" in expr), [])


class Sample:
    def __init__(self, value, **labels):
        self.value, self.labels = value, labels


def test_span_metrics_are_read_by_stage_kind_and_status():
    """The collector's label names; a missing stage is the request itself."""
    own = {"span_kind": "SPAN_KIND_SERVER", "status_code": "STATUS_CODE_ERROR"}
    found = span_metrics(
        FakePrometheus(
            {
                "traces_span_metrics_duration_seconds_bucket": [Sample(1, le="+Inf", **own), Sample(0, le="0.1", **own)],
                "traces_span_metrics_duration_seconds_sum": [Sample(0.5, **own)],
                "traces_span_metrics_calls_total": [Sample(1, **own)],
            }
        ),
        "rag",
    )  # fmt: skip
    assert found == {Key("", "SPAN_KIND_SERVER", True): Measured(1, 0.5, {math.inf: 1, 0.1: 0})}
    stages = engine_stages(
        FakePrometheus(
            {"llm_span_stage_seconds_count": [Sample(2, stage="queue")], "llm_span_stage_seconds_sum": [Sample(0.3, stage="queue")]}
        )
    )  # fmt: skip
    assert stages == {"queue": (2, 0.3)}


def test_jaegers_json_becomes_spans():
    """Service by process, parent by reference, tags by key; a span that follows from another is a root."""
    (root, child) = spans_of(
        {
            "processes": {"p1": {"serviceName": "rag"}},
            "spans": [
                {
                    "spanID": "a", "operationName": "POST", "references": [{"refType": "FOLLOWS_FROM", "spanID": "z"}],
                    "startTime": 5, "duration": 7, "processID": "p1", "tags": [],
                },
                {
                    "spanID": "b", "operationName": "rag rerank", "references": [{"refType": "CHILD_OF", "spanID": "a"}],
                    "startTime": 6, "duration": 1, "processID": "p1",
                    "tags": [{"key": "rag.stage", "value": "rerank"}, {"key": "otel.status_code", "value": "ERROR"}],
                },
            ],
        }
    )  # fmt: skip
    assert (root.parent, root.stage, root.failed) == ("", "", False)
    assert (child.parent, child.service, child.stage, child.failed) == ("a", "rag", "rerank", True)
