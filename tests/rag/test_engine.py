"""An engine's stream, whole and broken, and connections that died while they were kept."""

import pytest

from rag.config import Engine as EngineConfig
from rag.engine import Chunk, Engine, EngineError, Usage
from rag.metrics import Metrics
from rag.pool import Pool

from .conftest import sample


async def _stream(fake, metrics=None, times=1, **config):
    pool = Pool("engine", 4, 1, metrics or Metrics())
    chunks = []
    async with Engine(EngineConfig(url=fake.url, **config), pool) as engine:
        for _ in range(times):
            chunks = [
                one async for one in engine.stream([{"role": "user", "content": "q"}], {"traceparent": "t"})
            ]
    return chunks


async def test_a_whole_stream_gives_text_finish_and_usage(engine):
    """128 of 300 prompt tokens were cached; the trace context goes along."""
    chunks = await _stream(engine)
    assert "".join(one.text for one in chunks) == "It works."
    assert [one.finish_reason for one in chunks if one.finish_reason] == ["stop"]
    assert chunks[-1].usage == Usage(300, 3, 128)
    body, headers = engine.seen[0]
    assert headers["traceparent"] == "t"
    assert body["stream_options"] == {"include_usage": True}


async def test_silence_about_cached_tokens_is_unknown_until_the_engine_has_spoken(engine):
    """vLLM leaves the count out when it is 0: unknown at first, 0 after it was stated once."""
    stated = engine.events
    silent = [*stated[:3], {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 1}}, "[DONE]"]
    pool = Pool("engine", 4, 1, Metrics())
    cached = []
    async with Engine(EngineConfig(url=engine.url), pool) as client:
        for engine.events in (silent, stated, silent):
            chunks = [one async for one in client.stream([], {})]
            cached.append(chunks[-1].usage.cached)
    assert cached == [None, 128, 0]


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        (
            [{"choices": [{"delta": {"content": "a"}}]}, {"error": {"message": "x", "type": "y"}}],
            "stream_error",
        ),
        ([{"object": "error", "message": "x"}], "stream_error"),
        ([{"choices": [{"delta": {"content": "a"}}]}], "stream_cut"),
        ([{"choices": [{"delta": {"content": "a"}}]}, "[DONE]"], "stream_cut"),
        (["{not json"], "bad_stream"),
    ],
)
async def test_a_200_that_breaks_is_an_error(engine, events, kind):
    """An error event, an end without a finish reason, or nonsense inside a 200 stream."""
    engine.events = events
    with pytest.raises(EngineError) as caught:
        await _stream(engine)
    assert caught.value.error_type == kind


async def test_a_refusal_is_named_by_its_status(engine):
    """503 of an engine whose queue is full."""
    engine.status = 503
    with pytest.raises(EngineError) as caught:
        await _stream(engine)
    assert caught.value.error_type == "http_503"


async def test_an_engine_that_is_not_there(engine):
    """Refused connections have their own type."""
    engine.url = "http://127.0.0.1:1"
    with pytest.raises(EngineError) as caught:
        await _stream(engine)
    assert caught.value.error_type == "unreachable"


async def test_a_slow_engine_runs_into_the_timeout(engine):
    """0.2 s for the whole answer, 0.1 s an event."""
    engine.pause = 0.1
    with pytest.raises(EngineError) as caught:
        await _stream(engine, timeout_seconds=0.2)
    assert caught.value.error_type == "timeout"


async def test_a_dead_kept_connection_is_counted_and_another_one_tried(engine):
    """The second request meets the first's connection as the engine drops it; the caller sees nothing of it."""
    metrics = Metrics()
    pool = Pool("engine", 4, 1, metrics)
    async with Engine(EngineConfig(url=engine.url), pool) as client:
        assert [one async for one in client.stream([], {})]
        engine.drop_next = True
        again = [one async for one in client.stream([], {})]
    assert Chunk("It ") in again
    assert sample(metrics, "rag_pool_keepalive_resets_total", pool="engine") == 1
    assert len(engine.seen) == 3


async def test_a_new_connection_that_drops_is_no_reset(engine):
    """Nothing was kept: the engine hung up on a fresh connection, which is its failure."""
    metrics = Metrics()
    engine.drop_next = True
    with pytest.raises(EngineError) as caught:
        await _stream(engine, metrics)
    assert caught.value.error_type == "unreachable"
    assert sample(metrics, "rag_pool_keepalive_resets_total", pool="engine") == 0


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": [1]}, Usage(9, 2, None)),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": -3}},
            Usage(9, 2, None),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": "5"}},
            Usage(9, 2, None),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 10}},
            Usage(9, 2, None),
        ),
        ({"prompt_tokens": True, "completion_tokens": 2}, None),
        ({"prompt_tokens": -1, "completion_tokens": 2}, None),
        ({"prompt_tokens": 9, "completion_tokens": "2"}, None),
    ],
)
async def test_a_usage_that_makes_no_sense_is_unknown_and_costs_no_answer(engine, usage, expected):
    """Negative, textual, or more cached tokens than there were: unknown, where the answer is whole."""
    engine.events = [*engine.events[:3], {"choices": [], "usage": usage}, "[DONE]"]
    chunks = await _stream(engine)
    assert "".join(one.text for one in chunks) == "It works."
    assert chunks[-1].usage == expected
