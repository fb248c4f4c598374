"""A small truthful server: it does what the requested model's name says and logs when it truly sent each token."""

import asyncio
import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

TTFT_S = 0.03
GAP_S = 0.01
STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)


@dataclass
class Seen:
    """One request as the server saw it; times are time.monotonic()."""

    connection: int
    headers: dict[str, str]
    body: dict[str, Any]
    came: float
    tokens: list[float] = field(default_factory=list)


class MockServer:
    """Runs on its own thread; `seen` is the log, `url` the origin."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.seen: list[Seen] = []
        self.frozen = threading.Event()
        self._tls = tls
        self._connections = 0
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, ssl=self._tls)
        scheme = "https" if self._tls else "http"
        self.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._connections += 1
        number = self._connections
        try:
            while await self._request(number, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client hung up, which is what some tests do
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError, ssl.SSLError):
                await writer.wait_closed()

    async def _request(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")[1:-2]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "content-length" not in headers:  # a GET: this server has nothing to tell
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
            return True
        body = json.loads(await reader.readexactly(int(headers["content-length"])))
        seen = Seen(number, headers, body, time.monotonic())
        self.seen.append(seen)
        while self.frozen.is_set():
            await asyncio.sleep(0.01)
        if not body.get("stream"):
            return await _plain(writer, body)
        return await _stream(writer, seen)


async def _plain(writer: asyncio.StreamWriter, body: dict[str, Any]) -> bool:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}
    choice = {"index": 0, "message": {"content": "yes"}, "text": "yes", "finish_reason": "stop"}
    answer: dict[str, Any] = {"choices": [choice], "usage": usage}
    if "input" in body:
        answer = {"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 4}}
    data = json.dumps(answer).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    writer.write(head.encode() + data)
    await writer.drain()
    return True


def _chunk(payload: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(payload), payload)


def _event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def _token(text: str, finish: str | None = None) -> bytes:
    return _event({"id": "c", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _stream(writer: asyncio.StreamWriter, seen: Seen) -> bool:
    model = seen.body["model"]
    if model == "refuse":
        data = b'{"error": {"message": "busy", "type": "Service Unavailable", "code": 503}}'
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: %d\r\n\r\n%s" % (len(data), data))
        await writer.drain()
        return True
    if model == "garbage":
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        return False
    if model == "reset-at-once":
        _reset(writer)
        return False
    writer.write(STREAM_HEAD)
    writer.write(_chunk(_event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})))
    await writer.drain()
    await asyncio.sleep(TTFT_S)
    count = seen.body["max_tokens"]
    for index in range(count):
        if index:
            await asyncio.sleep(GAP_S)
        seen.tokens.append(time.monotonic())
        writer.write(_chunk(_token(f"t{index} ", "length" if index + 1 == count else None)))
        await writer.drain()
        if index == 1 and model in ("reset", "eof", "error-event"):
            return await _break(writer, model)
    usage = {"prompt_tokens": 7, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 2}}
    writer.write(_chunk(_event({"choices": [], "usage": usage})))
    if model != "no-done":
        writer.write(_chunk(b"data: [DONE]\n\n"))
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _break(writer: asyncio.StreamWriter, how: str) -> bool:
    if how == "reset":
        _reset(writer)
        return False
    if how == "error-event":
        writer.write(_chunk(_event({"error": {"message": "engine stopped", "type": "EngineDead"}})))
        writer.write(_chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n")
        await writer.drain()
        return True
    return False


@pytest.fixture
def server() -> Iterator[MockServer]:
    """A plain HTTP mock server."""
    mock = MockServer()
    yield mock
    mock.close()


@pytest.fixture
def streams() -> Path:
    """Folder of the recorded streams, one folder a case."""
    return Path(__file__).parent.parent / "fixtures" / "streams"
