"""Three life cycles of a stream: whole, broken by an error event, given up by the client."""

import json
from pathlib import Path

import pytest
from opentelemetry.trace import StatusCode

from inferwatch import tracing

FIXTURES = Path(__file__).parents[1] / "fixtures" / "tracing"
START_NS = 1_700_000_000_000_000_000


class EngineError(RuntimeError):
    """An error event came inside a 200 stream."""


def _play(name, monkeypatch):
    """Play a timeline on a clock that stands still between its events."""
    now = 0
    for module in ("span", "timing"):
        monkeypatch.setattr(f"inferwatch.tracing.{module}.perf_counter_ns", lambda: now)
    monkeypatch.setattr("inferwatch.tracing.span.time_ns", lambda: START_NS + now)

    @tracing.generate("tiny")
    def answer():
        nonlocal now
        for event in json.loads((FIXTURES / name).read_text()):
            now = event["t_ms"] * 1_000_000
            kind = event["ev"]
            if kind in ("first_token", "last_token", "client_close"):
                yield kind
            if usage := event.get("usage"):
                tracing.current().usage(usage["prompt_tokens"], usage["completion_tokens"])
            if kind == "stream_closed" and name.endswith("error.json"):
                raise EngineError

    stream = answer()
    for item in stream:
        if item == "client_close":
            stream.close()


def _milliseconds(span) -> float:
    return (span.end_time - span.start_time) / 1e6


def test_a_whole_stream_lasts_to_its_close(spans, monkeypatch):
    """2310 ms and not the 80 ms to the headers; first token at 300 ms; 2000 ms for the other 100 tokens."""
    _play("a53_timeline.json", monkeypatch)
    span = spans.one("chat tiny")
    assert _milliseconds(span) == 2310
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.3)
    assert span.attributes["gen_ai.usage.input_tokens"] == 20
    assert span.attributes["gen_ai.usage.output_tokens"] == 101
    assert span.attributes["inferwatch.stream.seconds_per_output_token"] == pytest.approx(0.02)


def test_an_error_event_in_the_stream_is_an_error(spans, monkeypatch):
    """It ends at 901 ms with an error; what the engine did not say about tokens is absent."""
    with pytest.raises(EngineError):
        _play("a53_timeline_error.json", monkeypatch)
    span = spans.one("chat tiny")
    assert _milliseconds(span) == 901
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["gen_ai.response.time_to_first_chunk"] == pytest.approx(0.3)
    assert "gen_ai.usage.output_tokens" not in span.attributes


def test_a_stream_given_up_ends_then_and_says_so(spans, monkeypatch):
    """One span of 500 ms marked abandoned, never OK, tokens absent and not 0."""
    _play("a53_timeline_abandoned.json", monkeypatch)
    span = spans.one("chat tiny")
    assert _milliseconds(span) == 500
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes["inferwatch.abandoned"] is True
    assert "gen_ai.usage.output_tokens" not in span.attributes
