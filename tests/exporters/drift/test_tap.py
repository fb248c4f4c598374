"""The tap: bytes unchanged both ways, streams as they come, samples behind the answer."""

import asyncio
import contextlib
import gzip
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from yarl import URL

from exporters.drift.config import Tap
from exporters.drift.streams import Key, Limits, Streams
from exporters.drift.tap import Proxy, Reviving, decoder, tap_app
from slo.signals import Drift

ANSWER = json.dumps(
    {"model": "embed-a", "data": [{"embedding": [1.0, 2.0]}, {"embedding": [0.0, 0.0]}]}
).encode()
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Start = Callable[..., Awaitable[tuple[str, Streams]]]


class Never(ThreadPoolExecutor):
    """A decoder that gets to nothing: what it is given waits."""

    def submit(self, *_: object, **__: object):  # type: ignore[no-untyped-def] # Executor.submit is generic over the call
        from concurrent.futures import Future

        return Future()


@pytest.fixture
async def start(drift: Drift) -> AsyncIterator[Start]:
    """start(handler): an upstream that answers with it, and a tap in front; gives the tap's URL and streams."""
    runners: list[web.AppRunner] = []

    async def serve(app: web.Application) -> str:
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        runners.append(runner)
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    async def begin(
        handler: Handler, executor: Executor | None = None, **more: object
    ) -> tuple[str, Streams]:
        upstream = web.Application()
        upstream.router.add_route("*", "/{path:.*}", handler)
        tap = Tap.model_validate({"upstream": await serve(upstream), **more})
        streams = Streams(drift, {}, Limits())
        proxy = Proxy(tap, streams, CollectorRegistry(), executor or ThreadPoolExecutor(1))
        return await serve(tap_app(proxy)), streams

    yield begin
    for runner in reversed(runners):
        await runner.cleanup()


async def until(condition: Callable[[], bool]) -> None:
    """Wait up to 10 s."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_requests_and_answers_pass_unchanged_and_are_sampled(start: Start) -> None:
    """Path, query, headers and body reach the upstream; body, status and headers come back byte for byte."""
    seen: list[tuple[str, str, bytes, str]] = []

    async def upstream(request: web.Request) -> web.Response:
        seen.append(
            (request.method, request.raw_path, await request.read(), request.headers["Authorization"])
        )
        return web.Response(body=ANSWER, content_type="application/json", headers={"X-Own": "1"})

    url, streams = await start(upstream)
    body = b'{"model":"embed-a", "input":["a","b"]}'
    headers = {"Authorization": "Bearer users-own", "X-Tenant": "t", "X-Model-Version": "3"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(URL(f"{url}/v1/embeddings?x=%2F", encoded=True), data=body, headers=headers) as answer,
    ):
        assert (answer.status, answer.headers["X-Own"], await answer.read()) == (200, "1", ANSWER)
    await until(lambda: bool(streams.streams))

    assert seen == [("POST", "/v1/embeddings?x=%2F", body, "Bearer users-own")]
    (key,) = streams.streams
    assert key == Key("embed-a", "3", "t")
    assert streams.streams[key].accepted["tap"] == 1
    assert streams.streams[key].rejected["tap", "zero"] == 1


async def test_compressed_answers_stay_compressed_and_are_read(start: Start) -> None:
    """The client gets the very gzip bytes."""
    packed = gzip.compress(ANSWER)

    async def upstream(_: web.Request) -> web.Response:
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    url, streams = await start(upstream)
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.post(f"{url}/v1/embeddings") as answer,
    ):
        assert await answer.read() == packed
        assert answer.headers["Content-Encoding"] == "gzip"
    await until(lambda: bool(streams.streams))


async def test_a_stream_is_passed_on_as_it_comes(start: Start) -> None:
    """The first event reaches the client while the upstream still holds back the second."""
    go_on = asyncio.Event()

    async def upstream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: one\n\n")
        await go_on.wait()
        await response.write(b"data: two\n\n")
        return response

    url, streams = await start(upstream)
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/chat/completions") as answer:
        async with asyncio.timeout(10):
            assert await answer.content.readany() == b"data: one\n\n"
        go_on.set()
        assert await answer.content.read() == b"data: two\n\n"
    assert streams.streams == {}


async def test_errors_of_the_upstream_are_passed_on_and_not_sampled(start: Start) -> None:
    """A 400 stays a 400 with its body; nothing is decoded."""

    async def upstream(_: web.Request) -> web.Response:
        return web.Response(status=400, body=b'{"error": "too long"}')

    url, streams = await start(upstream)
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/embeddings") as answer:
        assert (answer.status, await answer.read()) == (400, b'{"error": "too long"}')
    assert sum(streams.dropped.values()) == 0


async def test_an_upstream_that_is_gone_is_a_502(start: Start) -> None:
    """With words, in JSON."""

    async def unused(_: web.Request) -> web.Response:
        return web.Response()

    url, _ = await start(unused, upstream="http://127.0.0.1:9")
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/embeddings") as answer:
        assert answer.status == 502
        assert "does not answer" in (await answer.json())["error"]


async def test_an_answer_that_breaks_off_breaks_off_for_the_client_too(start: Start) -> None:
    """Half a body must not look like a whole one."""

    async def upstream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    url, streams = await start(upstream)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.post(f"{url}/v1/embeddings") as answer:
                await answer.read()
    assert streams.streams == {}


@pytest.mark.parametrize(("more", "reason"), [({"max_copy_bytes": 10}, "too_large"), ({}, "undecodable")])
async def test_what_cannot_be_sampled_passes_and_is_counted(
    start: Start, more: dict[str, object], reason: str
) -> None:
    """Too large to copy, or no embedding answer: the client gets it all the same."""
    body = ANSWER if more else b"no json"

    async def upstream(_: web.Request) -> web.Response:
        return web.Response(body=body)

    url, streams = await start(upstream, **more)
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v1/embeddings") as answer:
        assert await answer.read() == body
    await until(lambda: streams.dropped[reason] == 1)


async def test_a_busy_decoder_delays_nobody(start: Start) -> None:
    """It takes 2 and never finishes; ten requests are answered at once and eight are counted."""

    async def upstream(_: web.Request) -> web.Response:
        return web.Response(body=ANSWER)

    url, streams = await start(upstream, Never(1), max_waiting=2)
    async with aiohttp.ClientSession() as session, asyncio.timeout(10):
        for _ in range(10):
            async with session.post(f"{url}/v1/embeddings") as answer:
                assert await answer.read() == ANSWER
    assert streams.dropped["busy"] == 8


def test_a_decoder_that_was_killed_is_started_again_after_a_pause() -> None:
    """Its call in flight fails, calls within the pause are turned away, and then another process answers."""
    now = time.monotonic()
    executor = decoder(pause_seconds=0.0)
    try:
        first = executor.submit(os.getpid).result(60)
        os.kill(first, signal.SIGKILL)
        deadline = now + 60
        second = first
        while second == first and time.monotonic() < deadline:
            with contextlib.suppress(BrokenExecutor):
                second = executor.submit(os.getpid).result(60)
    finally:
        executor.shutdown()

    assert second not in (first, os.getpid())


def test_a_decoder_that_dies_at_once_is_not_started_in_a_loop() -> None:
    """Within the pause the call is refused, so that the tap drops its sample and goes on."""
    made: list[Executor] = []

    class Dead(ThreadPoolExecutor):
        def submit(self, *_: object, **__: object):  # type: ignore[no-untyped-def] # as in Never
            raise BrokenExecutor("dead")

    def make() -> Executor:
        made.append(Dead(1))
        return made[-1]

    executor = Reviving(make, pause_seconds=3600.0)
    for _ in range(3):
        with pytest.raises(BrokenExecutor):
            executor.submit(os.getpid)

    assert len(made) == 1
