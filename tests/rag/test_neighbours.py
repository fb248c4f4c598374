"""An embedding server instead of the model here, and the drift exporter that is told of each retrieval."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web

from .conftest import TINY, listening

TOKENIZER = {"max_tokens": 600, "tokenizer": TINY / "tokenizer.json"}


class EmbeddingServer:
    """`/v1/embeddings`: two numbers a text, unless *answer* says otherwise."""

    def __init__(self) -> None:
        self.answer, self.traceparents = None, []

    async def handle(self, request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        self.traceparents.append(request.headers.get("traceparent"))
        vectors = [{"embedding": [float(len(text)), 1.0]} for text in texts]
        return web.json_response(self.answer if self.answer is not None else {"data": vectors})


async def test_vectors_may_come_from_an_embedding_server(start, spans):
    """Its index is built and searched with its own vectors, in the trace of the request."""
    server = EmbeddingServer()
    app = web.Application()
    app.router.add_post("/v1/embeddings", server.handle)
    async with listening(app) as url:
        service = await start(embeddings=[{"url": url, "version": "far"}], context=TOKENIZER)
        status, body = await service.ask()
        assert (status, body["version"]) == (200, "far")
        embedding = next(one for one in spans() if (one.attributes or {}).get("rag.stage") == "embedding")
        assert server.traceparents[-1].split("-")[2] == f"{embedding.context.span_id:016x}"
        for server.answer in ({}, {"data": []}, {"data": [{"embedding": ["x"]}]}):
            status, body = await service.ask("cat ?")
            assert (status, body["error"]["type"]) == (502, "embedding_server")


async def test_without_any_local_model_a_tokenizer_must_be_named(start):
    """Context tokens could not be counted."""
    server = EmbeddingServer()
    app = web.Application()
    app.router.add_post("/v1/embeddings", server.handle)
    async with listening(app) as url:
        with pytest.raises(ValueError, match=r"context\.tokenizer: needed"):
            await start(embeddings=[{"url": url}])


async def test_the_drift_exporter_is_told_of_vectors_and_retrievals(start, tmp_path: Path):
    """One query vector of 32 numbers and one retrieval with its three scores, with the token."""
    got = []

    async def take(request: web.Request) -> web.Response:
        got.append((request.path, request.headers.get("Authorization"), await request.read()))
        return web.json_response({})

    app = web.Application()
    app.router.add_post("/{path:.*}", take)
    (tmp_path / "token").write_text("0123456789abcdef\n")
    async with listening(app) as url:
        service = await start(drift={"url": url, "token_file": tmp_path / "token"})
        assert (await service.ask())[0] == 200
        for _ in range(100):
            if len(got) == 2:
                break
            await asyncio.sleep(0.02)
    assert {authorization for _, authorization, _ in got} == {"Bearer 0123456789abcdef"}
    assert sorted(path for path, _, _ in got) == ["/v1/retrievals", "/v1/vectors"]
    assert b"how does" not in b"".join(body for _, _, body in got)
