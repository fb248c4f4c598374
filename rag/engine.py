"""Messages -> the chunks of an OpenAI-compatible engine's streamed answer, over connections that are kept alive."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import aiohttp

from rag.config import Engine as EngineConfig
from rag.pool import Pool

_TRIES = 4  # kept-alive connections found dead one after the other


class EngineError(RuntimeError):
    """The engine gave no whole answer; *error_type* is one of a short list, or http_ and the status."""

    def __init__(self, error_type: str, text: str) -> None:
        super().__init__(text)
        self.error_type = error_type


@dataclass(frozen=True)
class Usage:
    """Tokens as the engine counted them; *cached*: None where it does not say."""

    prompt: int
    output: int
    cached: int | None


@dataclass(frozen=True)
class Chunk:
    """One event of the stream; most have only text."""

    text: str = ""
    finish_reason: str | None = None
    usage: Usage | None = None


class Engine:
    """
    The client of one engine; use as an async context manager.

    An engine may state cached prompt tokens only where there are some (vLLM): once it has, silence means 0.
    """

    def __init__(self, config: EngineConfig, pool: Pool) -> None:
        self._config, self._pool = config, pool
        self._states_cached = False
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Engine":
        watch = aiohttp.TraceConfig()
        watch.on_connection_reuseconn.append(_reused)
        timeout = aiohttp.ClientTimeout(total=self._config.timeout_seconds)
        connector = aiohttp.TCPConnector(limit=0)  # the pool in front is the limit
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, trace_configs=[watch])
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def stream(
        self, messages: Sequence[Mapping[str, str]], headers: Mapping[str, str]
    ) -> AsyncGenerator[Chunk, None]:
        """The answer as it comes; the last chunk has a finish reason or a usage. Raises EngineError."""
        try:
            answer = await self._post(self._body(messages), headers)
            async with answer:
                if answer.status != 200:
                    raise EngineError(f"http_{answer.status}", f"the engine answered HTTP {answer.status}")
                async for chunk in self._events(answer):
                    yield chunk
        except TimeoutError as error:
            raise EngineError("timeout", f"no whole answer in {self._config.timeout_seconds:g} s") from error
        except aiohttp.ClientConnectionError as error:
            raise EngineError("unreachable", f"the engine cannot be reached or hung up: {error}") from error
        except (aiohttp.ClientError, ValueError) as error:
            raise EngineError("bad_stream", f"the engine's stream cannot be read: {error!r}") from error

    def _body(self, messages: Sequence[Mapping[str, str]]) -> dict[str, Any]:
        config = self._config
        body: dict[str, Any] = {
            "model": config.model,
            "messages": list(messages),
            "max_tokens": config.max_tokens,
            "temperature": config.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return {**body, "ignore_eos": True} if config.ignore_eos else body

    async def _post(self, body: dict[str, Any], headers: Mapping[str, str]) -> aiohttp.ClientResponse:
        """Send; a kept-alive connection that turns out dead is counted and another one tried."""
        if self._session is None:
            raise RuntimeError("use Engine as an async context manager")
        url = f"{self._config.url}/v1/chat/completions"
        for left in reversed(range(_TRIES)):
            seen = SimpleNamespace(reused=False)
            try:
                return await self._session.post(url, json=body, headers=headers, trace_request_ctx=seen)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                if not seen.reused:
                    raise
                self._pool.reset_seen()
                if not left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _events(self, answer: aiohttp.ClientResponse) -> AsyncIterator[Chunk]:
        finished = False
        async for line in answer.content:
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                break
            chunk = self._chunk(json.loads(data))
            finished = finished or chunk.finish_reason is not None
            yield chunk
        if not finished:
            raise EngineError("stream_cut", "the stream ended without a finish reason")

    def _chunk(self, event: Any) -> Chunk:
        if not isinstance(event, dict) or event.get("error") or event.get("object") == "error":
            raise EngineError("stream_error", "the engine reported an error inside its stream")
        choice = (event.get("choices") or [{}])[0]
        delta = choice.get("delta") or {}
        text = delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning") or ""
        return Chunk(str(text), choice.get("finish_reason"), self._usage(event.get("usage")))

    def _usage(self, value: Any) -> Usage | None:
        if not isinstance(value, dict):
            return None
        prompt, output = _tokens(value.get("prompt_tokens")), _tokens(value.get("completion_tokens"))
        if prompt is None or output is None:
            return None
        details = value.get("prompt_tokens_details")
        stated = details.get("cached_tokens") if isinstance(details, dict) else None
        if stated is None:
            return Usage(prompt, output, 0 if self._states_cached else None)
        cached = _tokens(stated)
        if cached is None or cached > prompt:  # said, and no such number: unknown, not 0
            return Usage(prompt, output, None)
        self._states_cached = True
        return Usage(prompt, output, cached)


def _tokens(value: Any) -> int | None:
    """A count of tokens; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


async def _reused(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.reused = True
