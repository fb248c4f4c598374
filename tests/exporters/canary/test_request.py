"""One request against real HTTP servers that answer well and badly."""

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from exporters.canary.access import Access, NotAsked
from exporters.canary.request import Asker

END = "data: [DONE]\n\n"
TOKEN = 'data: {"choices":[{"index":0,"text":" a","finish_reason":"length"}]}\n\n'
ROLE = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
ERROR = 'data: {"error":{"message":"engine stopped","type":"InternalServerError","code":500}}\n\n'

MakeAsker = Callable[..., Asker]


@pytest.fixture
async def make_asker() -> AsyncIterator[MakeAsker]:
    """Build askers that share one client session, closed with the test."""
    async with aiohttp.ClientSession() as session:

        def make(address: str, timeout_seconds: float = 5.0, **options: Any) -> Asker:
            async def access() -> Access:
                return Access(f"http://{address}", {"Authorization": "Bearer s3cret"})

            return Asker(session, access, timeout_seconds, **options)

        yield make


async def test_a_good_answer_is_ok_and_the_request_is_marked(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """One token at temperature 0, streamed, marked in header, id and user, with no seed."""
    engine = await start_engine()
    asker = make_asker(engine.address)
    outcome = await asker.ask()
    assert (outcome.result, outcome.code, asker.model) == ("ok", 200, "tiny")
    assert outcome.duration_seconds is not None
    assert outcome.first_token_seconds is not None
    assert 0 < outcome.first_token_seconds <= outcome.duration_seconds < 5
    ((path, headers, body),) = engine.seen
    assert path == "/v1/completions"
    assert headers["x-inferwatch-canary"] == "1"
    assert headers["x-request-id"].startswith("inferwatch-canary-")
    assert headers["authorization"] == "Bearer s3cret"
    assert body["user"] == "inferwatch-canary"
    assert (body["model"], body["max_tokens"], body["temperature"], body["stream"]) == ("tiny", 1, 0, True)
    assert "seed" not in body


async def test_chat_is_asked_where_the_server_knows_only_that(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """The chat API gets messages instead of a prompt."""
    engine = await start_engine()
    assert (await make_asker(engine.address, api="chat").ask()).result == "ok"
    ((path, _, body),) = engine.seen
    assert path == "/v1/chat/completions"
    assert body["messages"][0]["role"] == "user"
    assert "prompt" not in body


@pytest.mark.parametrize(
    ("body", "result"),
    [
        (ERROR + END, "error_in_stream"),
        (TOKEN + ERROR + END, "error_in_stream"),
        (ROLE + END, "no_token"),
        (END, "no_token"),
        ("", "no_token"),
        ("data: <html>\n\n", "malformed"),
        ('data: {"choices":[{"text":"a","finish_reason":null}]}\n\n', "malformed"),
        ("data: " + "x" * 1_100_000, "malformed"),
    ],
)
async def test_a_bad_stream_behind_a_200_is_a_failure(
    body: str, result: str, start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """The status code says nothing about what the stream held."""
    engine = await start_engine()
    engine.body = body
    outcome = await make_asker(engine.address).ask()
    assert (outcome.result, outcome.code) == (result, 200)


async def test_a_connection_lost_in_the_stream_is_malformed(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """A token came and then the server died: no success."""
    engine = await start_engine()
    engine.body, engine.break_off = TOKEN, True
    assert (await make_asker(engine.address).ask()).result == "malformed"


@pytest.mark.parametrize("status", [500, 503, 401, 429])
async def test_an_error_status_is_kept(
    status: int, start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """An HTTP error is counted under its own code."""
    engine = await start_engine()
    engine.status = status
    outcome = await make_asker(engine.address).ask()
    assert outcome.key == ("http", str(status))


@pytest.mark.parametrize(("status", "code"), [(401, "401"), (503, "")])
async def test_failing_to_list_models_is_no_failed_inference_request(
    status: int, code: str, start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """Rules take the canary's 5xx out of the engine's inference failures; /v1/models is not among those."""
    engine = await start_engine()
    engine.models_status = status
    outcome = await make_asker(engine.address).ask()
    assert outcome.key == ("http", code)
    assert str(status) in outcome.detail


async def test_a_redirect_is_not_followed(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """A target cannot send the canary, and its token, elsewhere: neither of the two requests follows."""
    engine = await start_engine()
    engine.status = 307
    outcome = await make_asker(engine.address).ask()
    assert outcome.key == ("http", "307")
    assert "/elsewhere" in outcome.detail
    engine.models_status = 302
    assert (await make_asker(engine.address).ask()).key == ("http", "302")


async def test_a_hang_is_a_timeout(start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker) -> None:
    """Headers came, then nothing: what an asleep engine or one with a stopped core does."""
    engine = await start_engine()
    engine.delay = 60
    outcome = await make_asker(engine.address, timeout_seconds=0.2).ask()
    assert outcome.key == ("timeout", "200")
    assert "0.2 s" in outcome.detail


async def test_silence_before_any_header_is_a_timeout_without_a_code(make_asker: MakeAsker) -> None:
    """A process that is stopped still has its connections accepted by the kernel."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert (await make_asker(address, timeout_seconds=0.2).ask()).key == ("timeout", "")


async def test_a_slow_answer_within_the_timeout_is_ok(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """0.2 s before the first token is in both times."""
    engine = await start_engine()
    engine.delay = 0.2
    outcome = await make_asker(engine.address).ask()
    assert outcome.result == "ok"
    assert outcome.first_token_seconds is not None
    assert outcome.first_token_seconds >= 0.19


async def test_nobody_listening_is_refused(make_asker: MakeAsker) -> None:
    """A port that was free a moment ago answers nothing."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    outcome = await make_asker(address).ask()
    assert outcome.key == ("refused", "")
    assert "Connect call failed" in outcome.detail
    assert "object at" not in outcome.detail


async def test_what_is_no_http_server_is_malformed(make_asker: MakeAsker) -> None:
    """Something else may sit on the port."""
    import asyncio

    async def chatter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(b"220 mail ready\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(chatter, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert (await make_asker(f"127.0.0.1:{port}").ask()).result == "malformed"


async def test_a_target_that_is_not_allowed_is_not_asked() -> None:
    """The allow-list speaks before any connection; the refusal is counted."""

    async def access() -> Access:
        raise NotAsked("target 'x' is not allowed")

    async with aiohttp.ClientSession() as session:
        outcome = await Asker(session, access, 1.0).ask()
    assert outcome.result == "refused"
    assert "not allowed" in outcome.detail


@pytest.mark.parametrize(
    ("models", "result"),
    [({"data": []}, "no_model"), ({"data": [{"id": ""}]}, "no_model"), ({"object": "list"}, "malformed"),
     ([1], "malformed")],
)  # fmt: skip
async def test_without_a_model_there_is_nothing_to_ask(
    models: object, result: str, start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """An empty list of models and an answer that is none are told apart."""
    engine = await start_engine()
    engine.models = models
    assert (await make_asker(engine.address).ask()).result == result
    assert engine.seen == []


async def test_the_model_is_asked_for_once_and_again_after_a_404(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """An engine that was given another model is asked for that one within the same attempt."""
    engine = await start_engine()
    asker = make_asker(engine.address)
    assert [(await asker.ask()).result for _ in range(3)] == ["ok", "ok", "ok"]
    assert engine.model_asks == 1
    engine.models = {"data": [{"id": "big"}]}
    assert (await asker.ask()).result == "ok"
    assert (asker.model, engine.model_asks) == ("big", 2)


async def test_a_404_that_is_not_about_the_model_stays_one(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """The path itself is missing: looked again, not asked again."""
    engine = await start_engine()
    asker = make_asker(engine.address)
    await asker.ask()
    engine.status = 404
    assert (await asker.ask()).key == ("http", "404")
    assert (engine.model_asks, len(engine.seen)) == (2, 2)


async def test_a_model_is_published_under_the_name_that_the_configuration_gives(
    start_engine: Callable[[], Awaitable[Any]], make_asker: MakeAsker
) -> None:
    """The engine is asked by its own spelling; series carry the published one."""
    engine = await start_engine()
    asker = make_asker(engine.address, aliases={"tiny": "chat"})
    assert (await asker.ask()).result == "ok"
    assert (asker.model, asker.published_model) == ("tiny", "chat")
