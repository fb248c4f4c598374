"""POST /v1/rag/answer -> a JSON body, or a stream of OpenAI-shaped events; the request's span, outcome and duration."""

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import asdict
from time import perf_counter
from typing import Any, NamedTuple

from aiohttp import web

from inferwatch import tracing
from inferwatch.tracing import attributes
from rag.cache import Found
from rag.context import NO_ANSWER, Prompt
from rag.engine import EngineError, Usage
from rag.faults import InjectedFault
from rag.index import Hit
from rag.library import Version
from rag.pipeline import ClientGone, Generated, Parts, Pipeline
from rag.pool import PoolStarved

ROUTE = "/v1/rag/answer"
VERSION_HEADER = "X-Embedding-Version"
MAX_QUESTION_CHARACTERS = 8_000


class BadRequest(ValueError):
    """A body that holds no question; the text says what is wrong."""

    status = 400


class _Asked(NamedTuple):
    question: str
    stream: bool
    version: Version
    found: Found


class Answers:
    """The handler. A failure's text goes to the caller; spans and metrics get its type only."""

    def __init__(self, parts: Parts) -> None:
        self._p, self._pipeline = parts, Pipeline(parts)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one request; every way out is counted once."""
        began, outcome = perf_counter(), "error"
        engine = self._p.config.engine
        span = tracing.request(f"POST {ROUTE}", request.headers, model=engine.model, operation="chat")
        try:
            with span as root:
                try:
                    outcome, response = await self._serve(request, root)
                except BadRequest as error:
                    outcome, response = (
                        "rejected",
                        await _refuse(request, root, 400, "invalid_request", str(error)),
                    )
            return response
        except (ClientGone, asyncio.CancelledError):
            outcome = "abandoned"
            raise
        except web.HTTPClientError:  # a body that is too large
            outcome = "rejected"
            raise
        finally:
            self._p.metrics.requests.labels(outcome).inc()
            self._p.metrics.duration.observe(perf_counter() - began)

    async def _serve(self, request: web.Request, root: tracing.Handle) -> tuple[str, web.StreamResponse]:
        with tracing.stage("receive"):
            asked = await self._receive(request, root)
        out = _Stream(request, root) if asked.stream else _Body(request, root)
        try:
            return "ok", await self._answer(asked, out)
        except ClientGone:
            raise
        except Exception as error:  # noqa: BLE001 # whatever a stage raised becomes an answer; its span says which stage
            kind = str(getattr(error, "error_type", "") or type(error).__qualname__)
            root.failed(kind)
            return "error", await out.fail(_status(error), kind, str(error))

    async def _receive(self, request: web.Request, root: tracing.Handle) -> _Asked:
        try:
            body = json.loads(await request.read())
            question, stream = body["question"], body.get("stream", False)
        except web.RequestPayloadError:
            raise BadRequest("the body cannot be decoded") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise BadRequest('the body is no JSON object with "question"') from None
        if not isinstance(question, str) or not question.strip() or len(question) > MAX_QUESTION_CHARACTERS:
            raise BadRequest(f"question: a text of 1 to {MAX_QUESTION_CHARACTERS} characters is wanted")
        if any("\ud800" <= one <= "\udfff" for one in question):  # JSON can say it, no encoding can
            raise BadRequest("question: it holds half a surrogate pair, which is no character")
        if not isinstance(stream, bool):
            raise BadRequest("stream: true or false is wanted")
        try:
            version = self._p.library.choose(request.headers.get(VERSION_HEADER))
        except KeyError:
            there = ", ".join(self._p.library.versions)
            raise BadRequest(f"{VERSION_HEADER}: no such version; there are {there}") from None
        found = self._pipeline.look_up(question, version)
        root.cache(found.level)
        root.set(attributes.EMBEDDING_VERSION, version.name)
        return _Asked(question, stream, version, found)

    async def _answer(self, asked: _Asked, out: "_Out") -> web.StreamResponse:
        version, hits = asked.version, asked.found.hits
        if asked.found.level == "miss":
            hits = await self._pipeline.find(asked.question, version)
        if not hits:
            await out.text(NO_ANSWER)
            return await out.end(self._facts(asked, hits, None), None)
        prompt = await self._pipeline.prompt(asked.question, hits, version)
        made = await self._pipeline.generate(prompt, version, out.text)
        return await out.end(self._facts(asked, hits, prompt), made)

    def _facts(self, asked: _Asked, hits: tuple[Hit, ...], prompt: Prompt | None) -> dict[str, Any]:
        """What the answer rests on; passages are cited by the numbers that the prompt gave them."""
        passages = self._p.library.passages
        cited = [
            {
                "number": number,
                "passage": hit.number,
                "title": passages[hit.number].title,
                "score": round(hit.score, 4),
            }
            for number, hit in enumerate(hits, start=1)
        ]
        return {
            "version": asked.version.name,
            "cache": asked.found.level,
            "citations": cited,
            "context": None
            if prompt is None
            else {
                "tokens_before": prompt.tokens_before,
                "tokens_after": prompt.tokens_after,
                "truncated": prompt.where,
                "cut": [asdict(one) for one in prompt.cuts],
            },
        }


class _Out(ABC):
    """One answer on its way out."""

    def __init__(self, request: web.Request, root: tracing.Handle) -> None:
        self._request, self._root = request, root

    @abstractmethod
    async def text(self, piece: str) -> None:
        """A piece of the answer."""

    @abstractmethod
    async def end(self, facts: dict[str, Any], made: Generated | None) -> web.StreamResponse:
        """The end of a whole answer."""

    async def fail(self, status: int, kind: str, text: str) -> web.StreamResponse:
        """The end of one that failed."""
        return await _refuse(self._request, self._root, status, kind, text)


class _Body(_Out):
    def __init__(self, request: web.Request, root: tracing.Handle) -> None:
        super().__init__(request, root)
        self._pieces: list[str] = []

    async def text(self, piece: str) -> None:
        self._pieces.append(piece)

    async def end(self, facts: dict[str, Any], made: Generated | None) -> web.StreamResponse:
        with tracing.stage("respond"):
            body = {
                "answer": "".join(self._pieces),
                **_ending(made),
                **facts,
                "trace_id": self._root.trace_id,
            }
            return await _send(self._request, self._root, 200, body)


class _Stream(_Out):
    """Headers go out with the first piece, so that a failure before it still has its own status."""

    def __init__(self, request: web.Request, root: tracing.Handle) -> None:
        super().__init__(request, root)
        self._response: web.StreamResponse | None = None

    async def text(self, piece: str) -> None:
        await self._event({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})

    async def end(self, facts: dict[str, Any], made: Generated | None) -> web.StreamResponse:
        with tracing.stage("respond"):
            ending = _ending(made)
            choice = {"index": 0, "delta": {}, "finish_reason": ending["finish_reason"]}
            await self._event({"choices": [choice]})
            last = {"choices": [], "usage": ending["usage"], "rag": facts, "trace_id": self._root.trace_id}
            response = await self._event(last)
            await _written(response.write(b"data: [DONE]\n\n"))
            await _written(response.write_eof())
        return response

    async def fail(self, status: int, kind: str, text: str) -> web.StreamResponse:
        if self._response is None:
            return await super().fail(status, kind, text)
        with tracing.stage("respond"):
            response = await self._event({"error": {"type": kind, "message": text}})
            await _written(response.write_eof())
        return response

    async def _event(self, value: dict[str, Any]) -> web.StreamResponse:
        if self._response is None:
            self._response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            self._root.http_status(200)
            await _written(self._response.prepare(self._request))
        event = {"object": "chat.completion.chunk", **value}
        await _written(self._response.write(f"data: {json.dumps(event)}\n\n".encode()))
        return self._response


def _ending(made: Generated | None) -> dict[str, Any]:
    """`finish_reason` and `usage` as the OpenAI API has them; without an engine's answer there is no usage."""
    return {
        "finish_reason": "stop" if made is None else made.finish_reason,
        "usage": None if made is None or made.usage is None else _usage(made.usage),
    }


def _usage(usage: Usage) -> dict[str, Any]:
    found: dict[str, Any] = {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
    }
    return (
        found if usage.cached is None else {**found, "prompt_tokens_details": {"cached_tokens": usage.cached}}
    )


def _status(error: Exception) -> int:
    if isinstance(error, PoolStarved | InjectedFault):
        return 503
    return 504 if isinstance(error, EngineError) and error.error_type == "timeout" else 502


async def _refuse(
    request: web.Request, root: tracing.Handle, status: int, kind: str, text: str
) -> web.StreamResponse:
    with tracing.stage("respond"):
        body = {"error": {"type": kind, "message": text}, "trace_id": root.trace_id}
        return await _send(request, root, status, body)


async def _send(
    request: web.Request, root: tracing.Handle, status: int, body: dict[str, Any]
) -> web.StreamResponse:
    root.set(attributes.STATUS_CODE, status)
    response = web.json_response(body, status=status)
    await _written(response.prepare(request))
    await _written(response.write_eof())
    return response


async def _written(writing: Awaitable[Any]) -> None:
    try:
        await writing
    except ConnectionError as error:
        raise ClientGone("the client hung up") from error
