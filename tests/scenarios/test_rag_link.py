"""The way to the engine: passed on, made longer, or cut where a connection is used again."""

from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from inferwatch.scenarios.rag_link import Link, application


@pytest.fixture
async def way() -> AsyncIterator[str]:
    """The URL of a link before an engine that answers with what it was asked."""

    async def echo(request: web.Request) -> web.Response:
        return web.Response(text=f"{request.path} {await request.text()}")

    engine = web.Application()
    engine.router.add_post("/v1/chat/completions", echo)
    async with TestServer(engine) as far, aiohttp.ClientSession() as session:
        link = Link({"row": {"upstream": str(far.make_url("")).rstrip("/"), "spans": ""}}, session)
        async with TestServer(application(link)) as near:
            yield str(near.make_url("")).rstrip("/")


async def ask(session: aiohttp.ClientSession, way: str) -> str:
    """The answer's text."""
    async with session.post(f"{way}/row/v1/chat/completions", data=b"what") as answer:
        return await answer.text()


async def test_it_passes_on(way: str) -> None:
    """Path and body arrive without the name of the row."""
    async with aiohttp.ClientSession() as session:
        assert await ask(session, way) == "/v1/chat/completions what"


async def test_every_second_connection_that_is_used_again_is_cut(way: str) -> None:
    """The first is new, the second is used again and passes, the third is cut; then a new one is well."""
    async with aiohttp.request("POST", f"{way}/link", json={"row": {"cuts": True}}) as told:
        assert told.status == 200
    async with aiohttp.ClientSession() as session:
        assert await ask(session, way)
        assert await ask(session, way)
        with pytest.raises(aiohttp.ClientConnectionError):
            await ask(session, way)
        assert await ask(session, way)


async def test_a_mend_ends_it(way: str) -> None:
    """Nothing is cut or late any more."""
    async with aiohttp.ClientSession() as session:
        for told in ({"cuts": True}, {}):
            async with session.post(f"{way}/link", json={"row": told}) as answer:
                assert (await answer.json())["row"] == told
        assert [await ask(session, way) for _ in range(4)] == ["/v1/chat/completions what"] * 4
