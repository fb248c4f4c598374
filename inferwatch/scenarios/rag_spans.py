"""`python -m inferwatch.scenarios.rag_spans PORT`: sends spans to collectors at a steady pace, as POST /spans says.

Body: {URL: {"per_second": 2, "attributes": 0}}; attributes have long names that the collector keeps, so that few spans make
many bytes. GET /spans: answers so far by URL and status.
"""

import asyncio
import os
import sys
import time
from collections import Counter, defaultdict
from typing import Any

import aiohttp
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

HOST = "127.0.0.1"
EVERY_SECONDS = 0.5
KEPT_NAME = "llm.token_count.prompt_details."
LONG_NAME = KEPT_NAME + "x" * (250 - len(KEPT_NAME))
"""Bytes in names cost the collector a tenth of what they do in values, which it searches for secrets."""
HEADERS = {"Content-Type": "application/x-protobuf"}


def spans(count: int, attributes: int) -> bytes:
    """An OTLP request of *count* roots, each a trace of its own, with so many long attributes."""
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.append(KeyValue(key="service.name", value=AnyValue(string_value="sender")))
    scope = resource.scope_spans.add()
    now = time.time_ns()
    long = [
        KeyValue(key=LONG_NAME + "y" * number, value=AnyValue(int_value=1)) for number in range(attributes)
    ]
    scope.spans.extend(
        Span(
            trace_id=os.urandom(16),
            span_id=os.urandom(8),
            name="work",
            kind=Span.SPAN_KIND_SERVER,
            start_time_unix_nano=now - 1_000_000,
            end_time_unix_nano=now,
            attributes=long,
        )
        for _ in range(count)
    )
    return bytes(request.SerializeToString())


class Sender:
    """What is sent where."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self.told: dict[str, dict[str, Any]] = {}
        self.answers: defaultdict[str, Counter[str]] = defaultdict(Counter)

    async def run(self) -> None:
        """Send for ever."""
        while True:
            began = time.monotonic()
            for url, told in list(self.told.items()):
                await self._send(
                    url, spans(max(1, int(told["per_second"] * EVERY_SECONDS)), told["attributes"])
                )
            await asyncio.sleep(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))

    async def _send(self, url: str, body: bytes) -> None:
        try:
            async with self._session.post(f"{url}/v1/traces", data=body, headers=HEADERS) as answer:
                self.answers[url][str(answer.status)] += 1
        except (aiohttp.ClientError, TimeoutError) as error:
            # A collector that is down has no other answer; it is counted, and the run is about it.
            self.answers[url][type(error).__name__] += 1


async def _serve(port: int) -> None:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
        sender = Sender(session)

        async def told(request: web.Request) -> web.Response:
            if request.method == "POST":
                sender.told.update(await request.json())
            return web.json_response(sender.answers)

        app = web.Application()
        app.router.add_route("*", "/spans", told)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, HOST, port).start()
        await sender.run()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
