"""Stages as context managers and decorators, of every kind of function."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from email.message import Message
from urllib.error import HTTPError

import pytest
from opentelemetry import trace
from opentelemetry.trace import StatusCode

from inferwatch import tracing


def test_stages_are_children_of_their_request(spans):
    """A request with a function, a block and a coroutine inside is one trace, marked by stage and kind."""

    @tracing.stage("tokenize")
    def tokenize(text: str) -> int:
        return len(text)

    @tracing.rerank("late-interaction", top_k=4)
    async def rerank() -> str:
        await asyncio.sleep(0)
        return "best"

    async def serve() -> None:
        async with tracing.request("POST /v1/rag/answer", model="tiny", operation="chat"):
            assert tokenize("abc") == 3
            with tracing.embedding("minilm", "v2"):
                pass
            assert await rerank() == "best"

    asyncio.run(serve())
    root = spans.one("POST /v1/rag/answer")
    children = [spans.one(name) for name in ("rag tokenize", "embeddings minilm", "rag rerank")]
    assert root.parent is None
    assert {child.parent.span_id for child in children} == {root.context.span_id}
    assert {child.context.trace_id for child in children} == {root.context.trace_id}
    assert dict(root.attributes) == {
        "openinference.span.kind": "CHAIN", "gen_ai.request.model": "tiny", "gen_ai.operation.name": "chat",
    }  # fmt: skip
    assert spans.attributes("embeddings minilm") == {
        "rag.stage": "embedding", "openinference.span.kind": "EMBEDDING", "gen_ai.operation.name": "embeddings",
        "gen_ai.request.model": "minilm", "rag.embedding.version": "v2",
    }  # fmt: skip
    assert spans.attributes("rag rerank")["rag.top_k"] == 4


def test_every_call_of_a_decorated_function_has_its_own_span(spans):
    """Recursion and repetition through one decorator do not mix spans up."""

    @tracing.stage("execute")
    def execute(depth: int) -> None:
        if depth:
            execute(depth - 1)

    execute(2)
    inner, middle, outer = spans.all()
    assert inner.parent.span_id == middle.context.span_id
    assert middle.parent.span_id == outer.context.span_id
    assert outer.parent is None


def test_one_context_manager_is_not_entered_twice(spans):
    """Entering twice would lose a span; it is refused by name."""
    work = tracing.stage("execute")
    with work, pytest.raises(RuntimeError, match="rag execute"):
        work.__enter__()
    with pytest.raises(RuntimeError, match="was not entered"):
        work.__exit__(None, None, None)


def test_a_failure_is_told_by_type_and_never_by_its_message(spans):
    """The message of an exception may hold a prompt: only the class stands on the span."""
    with pytest.raises(ValueError, match="secret"), tracing.stage("schedule"):
        raise ValueError("secret prompt")
    span = spans.one("rag schedule")
    assert span.status.status_code is StatusCode.ERROR
    assert span.status.description is None
    assert span.attributes["error.type"] == "ValueError"
    assert span.events == ()


def test_an_error_may_name_its_own_type(spans):
    """`error_type` of an exception goes before its class."""

    class StarvedError(RuntimeError):
        error_type = "pool_starved"

    with pytest.raises(StarvedError), tracing.generate("tiny"):
        raise StarvedError
    assert spans.attributes("chat tiny")["error.type"] == "pool_starved"


@pytest.mark.parametrize(("status", "failed"), [(404, False), (503, True)])
def test_a_raised_answer_fails_the_request_only_from_500_on(spans, status, failed):
    """A framework's HTTP exception below 500 is the client's doing."""

    class HttpError(Exception):
        pass

    error = HttpError()
    error.status = status
    with pytest.raises(HttpError), tracing.request("GET /x"):
        raise error
    span = spans.one("GET /x")
    assert span.attributes["http.response.status_code"] == status
    assert (span.status.status_code is StatusCode.ERROR) is failed


def test_a_cancelled_stage_is_abandoned(spans):
    """A caller that went away is neither an error nor a success."""

    async def serve() -> None:
        async with tracing.generate("tiny"):
            await asyncio.sleep(60)

    async def run() -> None:
        task = asyncio.create_task(serve())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    span = spans.one("chat tiny")
    assert span.status.status_code is StatusCode.UNSET
    assert span.attributes["inferwatch.abandoned"] is True


def test_a_generator_is_timed_to_its_last_item_and_leaves_the_consumers_context_alone(spans):
    """Between two items the consumer's own span is current; inside the generator the stage's is."""
    inside: list[int] = []

    @tracing.stage("detokenize")
    def words() -> Iterator[str]:
        for word in ("a", "b", "c"):
            inside.append(trace.get_current_span().get_span_context().span_id)
            yield word

    with tracing.request("GET /stream") as outer:
        for _ in words():
            assert trace.get_current_span() is outer.span
    span = spans.one("rag detokenize")
    assert set(inside) == {span.context.span_id}
    assert span.attributes["inferwatch.stream.chunks"] == 3
    assert span.attributes["gen_ai.response.time_to_first_chunk"] >= 0


def test_a_generator_takes_values_exceptions_and_returns(spans):
    """send, throw and the return value go through the wrapper."""

    @tracing.stage("detokenize")
    def echo() -> Iterator[str]:
        got = yield "first"
        try:
            yield got
        except KeyError:
            yield "caught"
        return "end"

    talk = echo()
    assert next(talk) == "first"
    assert talk.send("x") == "x"
    assert talk.throw(KeyError()) == "caught"
    with pytest.raises(StopIteration) as stop:
        next(talk)
    assert stop.value.value == "end"


async def test_an_async_generator_that_fails_is_an_error(spans):
    """The failure in the middle of a stream ends its span with an error; what came counts."""

    @tracing.stage("execute")
    async def stream() -> AsyncIterator[str]:
        yield "a"
        raise TimeoutError

    with pytest.raises(TimeoutError):
        async for _ in stream():
            pass
    span = spans.one("rag execute")
    assert span.attributes["error.type"] == "TimeoutError"
    assert span.attributes["inferwatch.stream.chunks"] == 1


async def test_an_async_generator_given_up_is_abandoned(spans):
    """Closing the stream early ends its span then, marked; not never."""

    @tracing.stage("execute")
    async def stream() -> AsyncIterator[int]:
        for number in range(1000):
            yield number

    answer = stream()
    async for number in answer:
        if number == 2:
            break
    await answer.aclose()
    span = spans.one("rag execute")
    assert span.attributes["inferwatch.abandoned"] is True
    assert span.attributes["inferwatch.stream.chunks"] == 3
    assert span.status.status_code is StatusCode.UNSET


def test_a_step_of_the_wall_clock_gives_no_negative_duration(spans, monkeypatch):
    """The wall clock is read once; the duration is the monotonic clock's: 120 ms here, though an hour was lost."""
    walls, ticks = iter((10**18, 10**18 - 3600 * 10**9)), iter((5_000_000, 125_000_000))
    monkeypatch.setattr("inferwatch.tracing.span.time_ns", lambda: next(walls))
    monkeypatch.setattr("inferwatch.tracing.span.perf_counter_ns", lambda: next(ticks))
    with tracing.stage("receive"):
        pass
    span = spans.one("rag receive")
    assert (span.start_time, span.end_time) == (10**18, 10**18 + 120_000_000)


def test_an_unknown_stage_is_refused():
    """Stages become label values: the list is closed, and the error shows it."""
    with pytest.raises(tracing.UnknownStage, match=r"'warp'.*receive, tokenize"):
        tracing.stage("warp")


class _Upstream(Exception):
    """As aiohttp's client raises: the status is that of whoever was asked."""

    def __init__(self) -> None:
        super().__init__("429")
        self.status, self.request_info = 429, None


@pytest.mark.parametrize(
    "error", [_Upstream(), HTTPError("http://x", 404, "no", Message(), None)], ids=["aiohttp", "urllib"]
)
def test_what_another_service_answered_is_our_failure(spans, error):
    """429 and 404 of an upstream are no doing of our caller."""
    with pytest.raises(type(error)), tracing.retrieval(4):
        raise error
    span = spans.one("retrieval")
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == type(error).__name__
    assert "http.response.status_code" not in span.attributes


async def test_what_a_generator_does_when_it_is_given_up_is_still_within_its_span(spans):
    """The clean-up of a stream, of both kinds, opens its spans below the stream's."""

    @tracing.generate("tiny")
    async def stream() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            with tracing.stage("detokenize"):
                pass

    @tracing.generate("small")
    def plain() -> Iterator[int]:
        try:
            yield 1
        finally:
            with tracing.stage("schedule"):
                pass

    async for _ in (source := stream()):
        break
    await source.aclose()
    for _ in (items := plain()):
        break
    items.close()
    for parent, child in (("chat tiny", "rag detokenize"), ("chat small", "rag schedule")):
        assert spans.one(child).parent.span_id == spans.one(parent).context.span_id
    assert not trace.get_current_span().get_span_context().is_valid
