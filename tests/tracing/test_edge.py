"""What comes in and goes out: traceparent by the standard's letter."""

import pytest

from inferwatch import tracing

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


def test_a_good_traceparent_is_the_parent_whatever_its_spelling(spans):
    """Header names ignore case; trace id, parent, flags and state are the caller's, and go on outward."""
    with tracing.request("GET /", {"Traceparent": GOOD, "TraceState": "foo=bar"}):
        out = tracing.outgoing_headers()
    span = spans.one("GET /")
    assert f"{span.context.trace_id:032x}" == TRACE
    assert f"{span.parent.span_id:016x}" == SPAN
    assert span.parent.is_remote
    assert out == {"traceparent": f"00-{TRACE}-{span.context.span_id:016x}-01", "tracestate": "foo=bar"}


def test_the_callers_decision_not_to_sample_is_kept(spans):
    """Flag 00: nothing is recorded, and the engine is told so."""
    with tracing.request("GET /", {"traceparent": f"00-{TRACE}-{SPAN}-00"}) as handle:
        out = tracing.outgoing_headers()
        assert not handle.recording
    assert spans.all() == ()
    assert out["traceparent"].startswith(f"00-{TRACE}-")
    assert out["traceparent"].endswith("-00")


def test_a_later_version_is_read_as_far_as_it_is_understood(spans):
    """Version cc with more fields and flags: the sampled bit counts, the rest is left."""
    with tracing.request("GET /", {"traceparent": f"cc-{TRACE}-{SPAN}-09-what-ever"}):
        pass
    assert f"{spans.one('GET /').context.trace_id:032x}" == TRACE


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "malformed"),
        ("hello", "malformed"),
        (f"00-{TRACE.upper()}-{SPAN}-01", "malformed"),
        (f"00-{TRACE[:-1]}-{SPAN}-01", "malformed"),
        (f"00-{TRACE}-{SPAN}-1", "malformed"),
        (f"00-{TRACE}-{SPAN}-01-more", "malformed"),
        (f"{GOOD},{GOOD}", "malformed"),
        (GOOD + "0" * 600, "malformed"),
        (f"ff-{TRACE}-{SPAN}-01", "version"),
        (f"00-{'0' * 32}-{SPAN}-01", "zero_id"),
        (f"00-{TRACE}-{'0' * 16}-01", "zero_id"),
    ],
)
def test_a_broken_traceparent_begins_a_new_trace_and_is_counted(spans, value, reason):
    """The request is served and traced; its trace is its own, and the count by reason goes up by one."""
    before = tracing.broken_traceparents()
    with tracing.request("GET /", {"traceparent": value}):
        pass
    span = spans.one("GET /")
    assert span.parent is None
    assert f"{span.context.trace_id:032x}" not in (TRACE, "0" * 32)
    assert span.attributes["inferwatch.traceparent.broken"] == reason
    assert tracing.broken_traceparents() == {**before, reason: before[reason] + 1}


def test_two_traceparents_are_broken_even_when_both_are_good(spans):
    """Which of the two is meant cannot be known."""
    before = tracing.broken_traceparents()["several"]
    with tracing.request("GET /", [("traceparent", GOOD), ("Traceparent", GOOD)]):
        pass
    assert spans.one("GET /").parent is None
    assert tracing.broken_traceparents()["several"] == before + 1


def test_no_traceparent_is_not_broken(spans):
    """A request without the header begins a trace and counts nothing."""
    before = tracing.broken_traceparents()
    with tracing.request("GET /", {"host": "x"}):
        pass
    assert spans.one("GET /").parent is None
    assert tracing.broken_traceparents() == before


def test_a_broken_traceparent_does_not_fall_back_to_an_outer_span(spans):
    """A new trace is new even where the framework opened a span already."""
    with tracing.stage("receive") as outer, tracing.request("GET /", {"traceparent": "x"}):
        pass
    assert spans.one("GET /").parent is None
    assert spans.one("GET /").context.trace_id != outer.span.get_span_context().trace_id


def test_an_unusable_tracestate_harms_nothing(spans):
    """It is dropped; the parent stays."""
    with tracing.request("GET /", {"traceparent": GOOD, "tracestate": "=,=,"}):
        pass
    assert f"{spans.one('GET /').context.trace_id:032x}" == TRACE


@pytest.mark.parametrize(
    ("model", "state"),
    [("org/tiny:7b", "inferwatch=org/tiny:7b,foo=bar"), ("a,b", "foo=bar"), ("a b", "foo=bar")],
)
def test_the_model_goes_along_in_tracestate_where_it_can(spans, model, state):
    """First member, the caller's stay; a name with a comma or a space would break the header."""
    with tracing.request("GET /", {"traceparent": GOOD, "tracestate": "foo=bar"}):
        assert tracing.outgoing_headers(model)["tracestate"] == state


def test_without_a_trace_nothing_goes_out():
    """No traceparent, no tracestate."""
    assert tracing.outgoing_headers("tiny") == {}


@pytest.mark.parametrize(
    "state",
    [
        "a=1,a=2",
        "the prompt is here",
        "a=1\n,b=2",
        "a=" + "x" * 257,
        ",".join(f"k{number}=v" for number in range(33)),
        "a=1," * 3000,
        "A=1",
        "a=\x00",
    ],
)
def test_a_broken_tracestate_is_dropped_and_not_written_into_the_log(spans, caplog, state):
    """Whatever a caller wrote there may be a prompt or a line break; the parent stays, the state goes."""
    with tracing.request("GET /", {"traceparent": GOOD, "tracestate": state}):
        assert "tracestate" not in tracing.outgoing_headers()
    assert f"{spans.one('GET /').context.trace_id:032x}" == TRACE
    assert caplog.text == ""


def test_a_full_tracestate_loses_its_last_member_to_ours(spans, caplog):
    """32 members are the most: 31 of the caller's stay, in their order, behind the model."""
    state = ",".join(f"k{number}=v" for number in range(32))
    with tracing.request("GET /", {"traceparent": GOOD, "tracestate": state}):
        members = tracing.outgoing_headers("tiny")["tracestate"].split(",")
    assert members == ["inferwatch=tiny", *(f"k{number}=v" for number in range(31))]
    assert caplog.text == ""
