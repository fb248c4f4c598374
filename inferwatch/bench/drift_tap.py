"""What the tap adds: the same embedding requests straight to a server and through the tap, in turn.

The server answers at once with 8 vectors of 384 numbers, so that what is measured is the way there and back. The
tap samples every answer meanwhile. Bytes are compared.
"""

import asyncio
import json
import socket
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np
from aiohttp import web

ROOT = Path(__file__).parents[2]
REQUESTS = 600
CONCURRENT = 2
PAUSE_SECONDS = 0.02  # between a client's requests: a served load, not a saturated machine
START_SECONDS = 60.0


class TapBenchError(RuntimeError):
    """The tap changed an answer or did not start; nothing was measured."""


def run() -> dict[str, object]:
    """Median and P99 of both ways in milliseconds, and what the tap adds at each."""
    return asyncio.run(_measure())


async def _measure() -> dict[str, object]:
    vectors = np.random.default_rng(1).standard_normal((8, 384)).astype(np.float32)
    data = [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)]
    body = json.dumps({"object": "list", "model": "m", "data": data}).encode()

    async def embeddings(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=body, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/embeddings", embeddings)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    upstream = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        with tempfile.TemporaryDirectory() as name:
            return await _compare(Path(name), upstream, body)
    finally:
        await runner.cleanup()


async def _compare(folder: Path, upstream: str, body: bytes) -> dict[str, object]:
    metrics, ingest, tap = _free_ports(3)
    (folder / "drift.yml").write_text(
        f"ingest: {{listen: '127.0.0.1:{ingest}'}}\ntap: {{listen: '127.0.0.1:{tap}', upstream: '{upstream}'}}\n"
    )
    words = (
        "-m",
        "exporters",
        "drift",
        "--config",
        str(folder / "drift.yml"),
        "--listen",
        f"127.0.0.1:{metrics}",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, *words, cwd=ROOT, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with aiohttp.ClientSession() as session:
            await _ready(session, f"http://127.0.0.1:{metrics}")
            ways = {"direct": upstream, "tap": f"http://127.0.0.1:{tap}"}
            for url in ways.values():
                await _times(session, url, body, 50)
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(6):
                for name, url in ways.items():
                    times[name] += await _times(session, url, body, REQUESTS // 6)
    finally:
        process.terminate()
        await process.wait()
    at = {name: {q: float(np.percentile(some, q)) for q in (50, 99)} for name, some in times.items()}
    return {
        "requests_a_way": REQUESTS,
        "concurrent": CONCURRENT,
        "direct_ms": {f"p{q}": round(v, 2) for q, v in at["direct"].items()},
        "tap_ms": {f"p{q}": round(v, 2) for q, v in at["tap"].items()},
        "added_ms": {f"p{q}": round(at["tap"][q] - at["direct"][q], 2) for q in (50, 99)},
        "bytes_equal": True,
    }


async def _times(session: aiohttp.ClientSession, url: str, body: bytes, count: int) -> list[float]:
    async def worker() -> list[float]:
        found = []
        for _ in range(count // CONCURRENT):
            begun = time.perf_counter()
            async with session.post(
                f"{url}/v1/embeddings", json={"model": "m", "input": ["x"] * 8}
            ) as answer:
                got = await answer.read()
            found.append((time.perf_counter() - begun) * 1000)
            if got != body:
                raise TapBenchError(f"{url}: the answer is not the server's, byte for byte")
            await asyncio.sleep(PAUSE_SECONDS)
        return found

    return [one for some in await asyncio.gather(*(worker() for _ in range(CONCURRENT))) for one in some]


async def _ready(session: aiohttp.ClientSession, url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            async with session.get(f"{url}/-/ready") as answer:
                if answer.status == 200:
                    return
        except aiohttp.ClientConnectionError:
            await asyncio.sleep(0.1)
    raise TapBenchError(f"{url}: the exporter was not ready within {START_SECONDS:g} s")


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports
