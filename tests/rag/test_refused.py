"""What the service refuses, whose doing it is counted as, and the switches that are not everybody's."""

import aiohttp
import pytest
from opentelemetry.trace import StatusCode

from rag.app import from_here


@pytest.mark.parametrize(
    ("body", "headers", "says"),
    [
        (b"no json", {}, 'no JSON object with "question"'),
        (b"{}", {}, "question"),
        (b'{"question": "  "}', {}, "1 to 8000 characters"),
        (b'{"question": "x", "stream": 1}', {}, "stream: true or false"),
        (b'{"question": "x"}', {"X-Embedding-Version": "v9"}, "no such version; there are v1"),
    ],
)
async def test_a_wrong_request_is_the_callers_doing(start, spans, body, headers, says):
    """400 and counted as rejected; no span is an error."""
    service = await start()
    async with service.client.post(f"{service.url}/v1/rag/answer", data=body, headers=headers) as answer:
        assert answer.status == 400
        assert says in (await answer.json())["error"]["message"]
    assert service.value("rag_requests_total", outcome="rejected") == 1
    assert all(one.status.status_code is StatusCode.UNSET for one in spans() if one.parent is None)


async def test_a_body_that_is_too_large_is_the_callers_doing(start):
    """413, counted as rejected and as nothing else."""
    service = await start(max_body_bytes=1000)
    async with service.client.post(f"{service.url}/v1/rag/answer", data=b"x" * 2000) as answer:
        assert answer.status == 413
    assert service.value("rag_requests_total", outcome="rejected") == 1
    assert service.value("rag_requests_total", outcome="error") == 0


@pytest.mark.parametrize(
    ("remote", "here"),
    [("127.0.0.1", True), ("::1", True), ("10.0.0.1", False), (None, False), ("unix", False)],
)
def test_switches_are_for_this_machine_only(remote, here):
    """A service that listens beyond loopback is not slowed from there."""
    assert from_here(remote) is here


async def test_the_switches_are_shut_unless_asked_for(start):
    """Without --faults nothing can be slowed from outside; health answers."""
    service = await start(faults=False)
    async with aiohttp.ClientSession() as client:
        for path in ("/faults", "/versions"):
            async with client.post(service.url + path, json={}) as answer:
                assert answer.status == 404
        async with client.get(f"{service.url}/-/ready") as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b'{"question": "\\ud800"}', ""),
        (b"[" * 50_000, ""),
        (b"no gzip", "gzip"),
        (b"\xff\xfe", ""),
    ],
)
async def test_a_body_that_no_parser_likes_is_the_callers_doing(start, body, encoding):
    """Half a character, nesting without end, a broken encoding: 400, counted as rejected."""
    service = await start()
    headers = {"Content-Type": "application/json"} | ({"Content-Encoding": encoding} if encoding else {})
    async with service.client.post(f"{service.url}/v1/rag/answer", data=body, headers=headers) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["type"] == "invalid_request"
    assert service.value("rag_requests_total", outcome="rejected") == 1
    assert service.value("rag_requests_total", outcome="error") == 0


@pytest.mark.parametrize("share", ["Infinity", "NaN", "1" + "0" * 400, "true", "-1"])
async def test_shares_without_an_end_are_refused_and_answers_go_on(start, share):
    """One endless share would make every later choice of a version fail."""
    service = await start()
    body = '{"v1": ' + share + "}"
    async with service.client.post(f"{service.url}/versions", data=body) as answer:
        assert answer.status == 400
    async with service.client.post(f"{service.url}/faults", data="[" * 50_000) as answer:
        assert answer.status == 400
    assert (await service.ask())[0] == 200
