"""Engines that do not behave: gone, slow, too large, cut off, or talking nonsense."""

import asyncio
import gzip
import socket
import time

import pytest

from exporters.engine.server import TIMEOUT_HEADER
from tests.exporters.engine.live import RUNNING, config, engine, exporter, probe, raw, reason


async def test_nothing_listens(page):
    """A refused connection says that nothing runs there; no engine series is published."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with exporter() as client:
        answer = await probe(client, page, f"127.0.0.1:{port}")
    assert reason(answer) == "refused"
    assert answer.values("llm_probe_http_status_code") == []
    assert answer.text.startswith("# probe failed: refused: ")


@pytest.mark.parametrize("status", [301, 302, 401, 404, 500, 503])
async def test_a_status_other_than_200_is_http(page, status):
    """The status is published; a redirect is not followed."""
    async with (
        engine(status=status, headers={"Location": "/elsewhere"}) as (target, seen),
        exporter() as client,
    ):
        answer = await probe(client, page, target)
    assert reason(answer) == "http"
    assert answer.one("llm_probe_http_status_code") == status
    assert [request.path for request in seen] == ["/metrics"]


@pytest.mark.parametrize(
    ("body", "why"),
    [(b"", "no_engine_metrics"), (b"<html>login</html>", "no_engine_metrics"), (RUNNING[:-1], "malformed")],
)
async def test_a_200_can_fail(page, body, why):
    """Nothing of an engine, or a page that is cut off."""
    async with engine(body) as (target, _), exporter() as client:
        assert reason(await probe(client, page, target)) == why


async def test_limits_on_bytes_and_series(page):
    """One byte or one series more than the module allows fails the probe."""
    body = RUNNING + b"# " + b"x" * (2048 - len(RUNNING) - 3) + b"\n"
    async with engine(body) as (target, _):
        async with exporter(config(max_body_bytes=2048)) as client:
            assert reason(await probe(client, page, target)) is None
        async with exporter(config(max_body_bytes=2047)) as client:
            assert reason(await probe(client, page, target)) == "too_large"
        async with exporter(config(max_series=2)) as client:
            assert reason(await probe(client, page, target)) is None
        async with exporter(config(max_series=1)) as client:
            assert reason(await probe(client, page, target)) == "too_large"


async def test_compressed_answers(page):
    """gzip is read though not asked for; cut off it is malformed; a bomb is stopped at the limit."""
    packed = gzip.compress(RUNNING)
    bomb = gzip.compress(b"#" * 200_000_000, 1)
    zipped = {"Content-Encoding": "gzip"}
    async with exporter(config(max_body_bytes=100_000)) as client:
        async with engine(packed, headers=zipped) as (target, _):
            assert (await probe(client, page, target)).one("llm_requests_running") == 3
        async with engine(packed[:-9], headers=zipped) as (target, _):
            assert reason(await probe(client, page, target)) == "malformed"
        async with engine(b"not gzip", headers=zipped) as (target, _):
            assert reason(await probe(client, page, target)) == "malformed"
        async with engine(RUNNING, headers={"Content-Encoding": "br"}) as (target, _):
            assert reason(await probe(client, page, target)) == "malformed"
        async with engine(bomb, headers=zipped) as (target, _):
            answer = await probe(client, page, target)
    assert reason(answer) == "too_large"
    assert answer.one("llm_probe_body_bytes") == 100_001


async def test_time_is_prometheus_s_less_the_offset(page):
    """A body that drips, and one that never starts, end within the scrape's own time."""

    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"#")
            await asyncio.sleep(0.05)

    async def silent(reader, writer):
        await reader.read()
        writer.close()

    for handler in (drip, silent):
        async with raw(handler) as target, exporter() as client:
            begun = time.monotonic()
            answer = await probe(client, page, target, headers={TIMEOUT_HEADER: "0.9"})
            assert time.monotonic() - begun < 0.9
        assert reason(answer) == "timeout"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "unreachable"),
        (b"SSH-2.0-x\r\n\r\n", "http"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nvllm:", "malformed"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nvllm", "malformed"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", "http"),
    ],
)
async def test_servers_that_break_off_or_talk_nonsense(page, answer, why):
    """Each is a failed probe with its own reason, none is a crash."""

    async def handler(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with raw(handler) as target, exporter() as client:
        assert reason(await probe(client, page, target)) == why


async def test_sick_targets_do_not_hold_up_healthy_ones(page, capture):
    """Fifty healthy probes finish while fifty hang."""

    async def silent(reader, writer):
        await reader.read()
        writer.close()

    healthy = engine(capture("vllm-0.32.0-cpu-metrics_light"))
    async with raw(silent) as sick, healthy as (target, _), exporter() as client:
        long = {TIMEOUT_HEADER: "20"}
        hanging = [asyncio.create_task(probe(client, page, sick, headers=long)) for _ in range(50)]
        answers = await asyncio.gather(*(probe(client, page, target) for _ in range(50)))
        assert not any(task.done() for task in hanging)
        for task in hanging:
            task.cancel()
        await asyncio.gather(*hanging, return_exceptions=True)
    assert [reason(answer) for answer in answers] == [None] * 50
    assert {answer.one("llm_prompt_tokens_total") for answer in answers} == {315489}


async def test_a_huge_page_does_not_stop_the_others(page):
    """Two megabytes of distinct series are refused in a thread while other probes are answered."""
    line = b'vllm:num_requests_running{engine="%d",model_name="m"} 1\n'
    huge = b"".join(line % rank for rank in range(36_000))
    async with engine(huge) as (large, _), engine() as (small, _), exporter() as client:
        slow = asyncio.create_task(probe(client, page, large))
        while not slow.done():
            assert reason(await probe(client, page, small)) is None
        assert reason(await slow) == "too_large"
