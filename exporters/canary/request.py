"""One real one-token request to an engine -> its Outcome."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

import aiohttp

from exporters.canary.access import Access, NotAsked
from exporters.canary.series import Outcome
from exporters.canary.stream import Malformed, TokenStream

Api = Literal["completions", "chat"]

MARK = "inferwatch-canary"
MARK_HEADER = "X-Inferwatch-Canary"

_PROMPT = "Hello"
_PATHS: dict[Api, str] = {"completions": "/v1/completions", "chat": "/v1/chat/completions"}
_MODELS_PATH = "/v1/models"
_MAX_BODY_BYTES = 1 << 20
_DETAIL_BYTES = 300


class _Failed(Exception):
    """Carries the outcome of a request that ended early."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


class Asker:
    """Asks one target, one request at a time; keeps the model's name between requests."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        access: Callable[[], Awaitable[Access]],
        timeout_seconds: float,
        api: Api = "completions",
        aliases: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """*access* is asked before each request and raises NotAsked where the target may not be."""
        self.model: str | None = None
        self._session = session
        self._access = access
        self._timeout_seconds = timeout_seconds
        self._api = api
        self._aliases = aliases
        self._status: int | None = None

    @property
    def published_model(self) -> str | None:
        """The model's name on our series: what the configuration publishes for the engine's spelling."""
        return None if self.model is None else self._aliases.get(self.model, self.model)

    async def ask(self) -> Outcome:
        """Send one request, finding the model first where it is not known, all within the timeout."""
        self._status = None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._ask(await self._access())
        except TimeoutError:
            seen = "no answer" if self._status is None else f"headers ({self._status}) and no end"
            return Outcome("timeout", self._status, detail=f"{seen} within {self._timeout_seconds:g} s")
        except _Failed as failed:
            return failed.outcome
        except (NotAsked, aiohttp.ClientConnectionError) as error:
            self.model = None
            return Outcome("refused", detail=_why(error))
        except aiohttp.ClientError as error:
            return Outcome("malformed", detail=f"no HTTP answer: {error}")

    async def _ask(self, access: Access) -> Outcome:
        known = self.model is not None
        model = self.model or await self._discover(access)
        self.model = model
        outcome = await self._complete(access, model)
        if known and outcome.code == 404:
            # The engine may serve another model since: look again, ask once more if it does.
            self.model = await self._discover(access)
            if self.model != model:
                return await self._complete(access, self.model)
        return outcome

    async def _discover(self, access: Access) -> str:
        async with self._session.get(
            access.base_url + _MODELS_PATH,
            headers={**access.headers, MARK_HEADER: "1"},
            ssl=access.tls,
            server_hostname=access.server_name,
            allow_redirects=False,
        ) as response:
            if response.status != 200:
                failure = await _http_failure(response)
                # A 5xx counts among the engine's failed inference requests, and this is none.
                raise _Failed(replace(failure, code=None) if response.status >= 500 else failure)
            body = await _bounded(response)
        try:
            models = json.loads(body)["data"]
            ids = [model["id"] for model in models]
        except (ValueError, KeyError, TypeError):
            raise _Failed(
                Outcome("malformed", detail=f"{_MODELS_PATH}: no list of models: {body[:80]!r}")
            ) from None
        named = [i for i in ids if isinstance(i, str) and i]
        if not named:
            raise _Failed(Outcome("no_model", detail=f"{_MODELS_PATH} lists no model"))
        return named[0]

    async def _complete(self, access: Access, model: str) -> Outcome:
        clock = asyncio.get_running_loop().time
        started = clock()
        async with self._session.post(
            access.base_url + _PATHS[self._api],
            json=_body(self._api, model),
            headers={**access.headers, MARK_HEADER: "1", "X-Request-Id": f"{MARK}-{uuid.uuid4().hex}"},
            ssl=access.tls,
            server_hostname=access.server_name,
            allow_redirects=False,
        ) as response:
            if response.status != 200:
                return await _http_failure(response)
            self._status = response.status
            return await _read_stream(response, started, clock)


def _body(api: Api, model: str) -> dict[str, object]:
    asked: dict[str, object] = (
        {"prompt": _PROMPT} if api == "completions" else {"messages": [{"role": "user", "content": _PROMPT}]}
    )
    return asked | {
        "model": model,
        "max_tokens": 1,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "user": MARK,
    }


def _why(error: Exception) -> str:
    """The reason alone; aiohttp's own text of a refused connection shows Python objects."""
    if isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError):
        return str(error.os_error)
    return str(error) or type(error).__name__


async def _read_stream(
    response: aiohttp.ClientResponse, started: float, clock: Callable[[], float]
) -> Outcome:
    stream, size = TokenStream(), 0
    try:
        async for data in response.content.iter_any():
            size += len(data)
            if size > _MAX_BODY_BYTES:
                raise Malformed(f"over {_MAX_BODY_BYTES} bytes for one token")
            stream.feed(data, clock())
        stream.close(clock())
    except (Malformed, aiohttp.ClientError) as error:
        if stream.error is None:
            return Outcome("malformed", 200, detail=str(error) or type(error).__name__)
    if stream.error is not None:
        return Outcome("error_in_stream", 200, detail=stream.error[:_DETAIL_BYTES])
    if not stream.held_token:
        return Outcome("no_token", 200, detail="the stream ended without a token")
    if not stream.finished:
        return Outcome("malformed", 200, detail="the stream broke off: no finish_reason and no [DONE]")
    first = stream.first_token_at
    return Outcome(
        "ok",
        200,
        clock() - started,
        None if first is None else first - started,
        prompt_tokens=stream.prompt_tokens,
        generation_tokens=stream.tokens,
    )


async def _http_failure(response: aiohttp.ClientResponse) -> Outcome:
    try:
        body = await response.content.read(_DETAIL_BYTES)
    except aiohttp.ClientError as error:
        body = str(error).encode()
    if 300 <= response.status < 400:
        body = (
            b"redirects are not followed, give the final address: "
            + response.headers.get("Location", "").encode()
        )
    return Outcome(
        "http", response.status, detail=f"HTTP {response.status} {body.decode('utf-8', 'replace')}"
    )


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    try:
        async for data in response.content.iter_any():
            body += data
            if len(body) > _MAX_BODY_BYTES:
                detail = f"{_MODELS_PATH}: over {_MAX_BODY_BYTES} bytes"
                raise _Failed(Outcome("malformed", detail=detail))
    except aiohttp.ClientError as error:
        raise _Failed(Outcome("malformed", detail=f"{_MODELS_PATH}: {error}")) from None
    return body
