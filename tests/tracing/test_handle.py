"""What is said of a span, and what is not."""

from inferwatch import tracing
from inferwatch.tracing.timing import TokenClock


def test_what_is_known_is_set_and_what_is_not_is_absent(spans):
    """Usage without a cached count, a context cut from 900 to 600 tokens, a pool wait, a cache level."""
    with tracing.retrieval(8, index="topics", hybrid=True, query_class="short", version="v1") as handle:
        handle.cache("l2")
        handle.pool_wait(0.25)
        handle.context(900, 600)
        handle.usage(120, None)
    assert spans.attributes("retrieval topics") == {
        "rag.stage": "retrieval", "openinference.span.kind": "RETRIEVER", "gen_ai.operation.name": "retrieval",
        "gen_ai.data_source.id": "topics", "gen_ai.request.top_k": 8, "rag.top_k": 8, "rag.hybrid_search": True,
        "rag.query_class": "short", "rag.embedding.version": "v1", "rag.cache.level": "l2",
        "rag.pool.wait_seconds": 0.25, "rag.context.tokens_before": 900, "rag.context.tokens_after": 600,
        "rag.context.truncated": True, "gen_ai.usage.input_tokens": 120,
    }  # fmt: skip


def test_a_clock_can_run_across_calls(monkeypatch):
    """Begun at 0: chunks at 100, 150 and 400 ms; the longest gap is 250 ms; 300 ms over 6 more tokens is 50 ms."""
    times = iter((0, 100, 150, 400))
    monkeypatch.setattr("inferwatch.tracing.timing.perf_counter_ns", lambda: next(times) * 1_000_000)
    clock = TokenClock()
    assert clock.first_seconds is None
    assert clock.longest_gap_seconds is None
    for _ in range(3):
        clock.tick()
    assert round(clock.first_seconds, 9) == 0.1
    assert round(clock.longest_gap_seconds, 9) == 0.25
    assert round(clock.seconds_per_token(7), 9) == 0.05
    assert clock.seconds_per_token(1) is None
    assert clock.seconds_per_token(None) is None


def test_outside_any_span_everything_is_a_no_op():
    """Code that speaks of the current span may run without one."""
    handle = tracing.current()
    handle.failed("x")
    handle.usage(1, 2)
    handle.tokens().tick()
    assert not handle.recording
    assert tracing.outgoing_headers() == {}
