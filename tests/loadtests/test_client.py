"""The client against a server that knows when it truly sent: stamps, failures, reuse, TLS, timeouts.

Uses gevent without any monkey-patching; the server runs on its own thread.
"""

import datetime
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gevent
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from loadtests.client import Client
from loadtests.plan import LoadPlan, open_loop, parse_plan
from loadtests.records import RequestRecord
from loadtests.transport import kernel_stamps_work, now_ns
from loadtests.workload import Workload


def _plan(url: str, model: str = "ok", **changes: Any) -> LoadPlan:
    base = {"base_url": url, "model": model, "arrival": open_loop(1, 1), "output_tokens": 4}
    return parse_plan({**base, "request_timeout_s": 10, **changes})


def _perform(plan: LoadPlan, count: int = 1) -> list[RequestRecord]:
    work, client = Workload(plan), Client(plan)
    try:
        return [client.perform(work.next(), now_ns()) for _ in range(count)]
    finally:
        client.close()


@pytest.mark.parametrize("kernel_stamps", [True, False])
def test_stamps_follow_the_true_sends(server: Any, kernel_stamps: bool) -> None:
    """Each token is stamped after it was truly sent and soon after; the counts are the server's."""
    record, again = _perform(_plan(server.url, kernel_stamps=kernel_stamps), 2)
    sent = server.seen[0].tokens

    assert (record.outcome, record.status, record.error_kind) == ("ok", 200, None)
    assert (record.output_tokens, record.prompt_tokens, record.cached_tokens) == (4, 7, 2)
    assert (record.finish_reason, record.done_seen, record.chunks) == ("length", True, 4)
    assert record.first_token_s is not None
    assert -0.0005 <= record.first_token_s - sent[0] <= 0.25  # half a millisecond for the two clocks
    gaps = [later - earlier for earlier, later in pairwise(sent)]
    for mine, true in zip(record.chunk_gaps_ns, gaps, strict=True):
        assert abs(mine / 1e9 - true) < 0.25
    assert record.ttft_s is not None and record.ttft_s >= 0.03
    assert again.clock == ("kernel" if kernel_stamps and kernel_stamps_work() else "monotonic")


def test_wall_clock_of_a_record(server: Any) -> None:
    """Monotonic stamp plus offset is Unix time."""
    before = time.time()
    (record,) = _perform(_plan(server.url))

    assert record.sent_s is not None
    assert before - 0.01 <= record.sent_s + record.wall_offset_s <= time.time() + 0.01


def test_connections_are_reused_and_the_record_tells(server: Any) -> None:
    """One connection carries all requests; only the first has a connect time."""
    records = _perform(_plan(server.url), 3)

    assert {seen.connection for seen in server.seen} == {1}
    assert [record.connect_s is not None for record in records] == [True, False, False]


def test_keep_alive_can_be_left_out(server: Any) -> None:
    """Without keep-alive each request has its own connection and says so to the server."""
    _perform(_plan(server.url, keep_alive=False), 2)

    assert [seen.connection for seen in server.seen] == [1, 2]
    assert server.seen[0].headers["connection"] == "close"


def test_trace_id_travels(server: Any) -> None:
    """The record's trace id is the one in traceparent and the request id."""
    (record,) = _perform(_plan(server.url, trace_sampled_share=1))
    headers = server.seen[0].headers

    assert headers["x-request-id"] == record.trace_id
    assert headers["traceparent"].split("-")[1] == record.trace_id
    assert headers["traceparent"].endswith("-01")


@pytest.mark.parametrize(
    ("model", "kind", "status", "tokens"),
    [
        ("refuse", "http_503:Service Unavailable", 503, 0),
        ("error-event", "stream_error:EngineDead", 200, 2),
        ("reset", "reset", 200, 2),
        ("eof", "premature_eof", 200, 2),
        ("reset-at-once", "reset", None, 0),
        ("garbage", "protocol", None, 0),
    ],
)
def test_failures_have_their_kind(
    server: Any, model: str, kind: str, status: int | None, tokens: int
) -> None:
    """Whatever breaks, the request is an error of that kind, never a success with a latency."""
    (record,) = _perform(_plan(server.url, model))

    assert (record.outcome, record.error_name, record.status) == ("error", kind, status)
    assert (record.chunks, record.e2e_s) == (tokens, None)


def test_missing_done_is_a_success_that_says_so(server: Any) -> None:
    """A finish reason is enough; the record shows that [DONE] never came."""
    (record,) = _perform(_plan(server.url, "no-done"))

    assert (record.outcome, record.done_seen, record.output_tokens) == ("ok", False, 4)


def test_a_failed_connection_is_not_used_again(server: Any) -> None:
    """After an error in the stream of an otherwise whole response reuse is fine; after a reset it is not."""
    _perform(_plan(server.url, "error-event"), 2)
    _perform(_plan(server.url, "reset"), 2)

    assert [seen.connection for seen in server.seen] == [1, 1, 2, 3]


def test_planned_hang_up(server: Any) -> None:
    """The client hangs up after the wanted number of chunks: an abort, not an error, with what came so far."""
    (record,) = _perform(_plan(server.url, abort_share=1, abort_after_chunks=2, output_tokens=50))

    assert (record.outcome, record.error_kind, record.chunks, record.e2e_s) == ("aborted", None, 2, None)
    assert record.tokens_source == "estimated"


@pytest.mark.parametrize(("endpoint", "tokens"), [("chat", 2), ("completions", 2), ("embeddings", None)])
def test_answers_that_are_not_streamed(server: Any, endpoint: str, tokens: int | None) -> None:
    """A whole JSON answer has a total time and the server's counts, and no first token."""
    (record,) = _perform(_plan(server.url, stream=False, mix={endpoint: 1}, keep_text=True))

    assert (record.outcome, record.output_tokens, record.ttft_s) == ("ok", tokens, None)
    assert record.e2e_s is not None
    assert record.text == ("" if endpoint == "embeddings" else "yes")


def test_timeout_is_an_error_with_its_kind(server: Any) -> None:
    """A server that stalls costs the timeout, not for ever."""
    server.frozen.set()
    (record,) = _perform(_plan(server.url, request_timeout_s=0.2))
    server.frozen.clear()

    assert (record.outcome, record.error_kind) == ("error", "timeout")
    assert record.end_s - record.started_s >= 0.2


def test_refused_and_unresolvable() -> None:
    """No listener and no such name are told apart."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        (refused,) = _perform(_plan(f"http://127.0.0.1:{port}"))
    (unknown,) = _perform(_plan("http://no-such-host.invalid:1"))

    assert (refused.error_kind, refused.sent_s) == ("connect_refused", None)
    assert unknown.error_kind == "dns"


def test_killed_greenlet_leaves_a_record(server: Any) -> None:
    """Ending a run at once keeps what is known of the requests under way."""
    plan = _plan(server.url, output_tokens=500)
    client, work = Client(plan), Workload(plan)
    greenlet = gevent.spawn(client.perform, work.next(), now_ns())
    gevent.sleep(0.2)
    greenlet.kill()
    record = greenlet.value
    client.close()

    assert (record.outcome, record.error_kind) == ("unfinished", None)
    assert record.chunks > 0


def test_idle_connection_that_the_server_closed_is_not_used(server: Any) -> None:
    """A peer that hung up between requests is noticed before the next one is sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    answered: list[bytes] = []

    def serve() -> None:
        for _ in range(2):
            peer, _ = listener.accept()
            answered.append(peer.recv(65536))
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            peer.close()

    thread = threading.Thread(target=serve)
    thread.start()
    plan = _plan(f"http://127.0.0.1:{listener.getsockname()[1]}", stream=False)
    client, work = Client(plan), Workload(plan)
    first = client.perform(work.next(), now_ns())
    gevent.sleep(0.1)
    second = client.perform(work.next(), now_ns())
    client.close()
    thread.join(10)
    listener.close()

    assert (first.outcome, second.outcome, len(answered)) == ("ok", "ok", 2)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A self-signed certificate for 127.0.0.1 with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path.write_bytes(built.public_bytes(pem) + key.private_bytes(pem, private, serialization.NoEncryption()))
    return path


@pytest.fixture
def tls_server(certificate: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The mock server behind TLS."""
    mock_class = type(request.getfixturevalue("server"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    mock = mock_class(context)
    yield mock
    mock.close()


def test_tls_with_a_known_authority(tls_server: Any, certificate: Path) -> None:
    """Streams over TLS are read and stamped alike, and the connection is reused."""
    records = _perform(_plan(tls_server.url, ca_file=str(certificate)), 2)

    assert [(record.outcome, record.output_tokens, record.chunks) for record in records] == [("ok", 4, 4)] * 2
    assert {seen.connection for seen in tls_server.seen} == {1}
    assert records[1].clock == ("kernel" if kernel_stamps_work() else "monotonic")


def test_tls_is_verified_unless_told_otherwise(tls_server: Any) -> None:
    """An unknown certificate is an error; `insecure` accepts it."""
    (refused,) = _perform(_plan(tls_server.url))
    (taken,) = _perform(_plan(tls_server.url, insecure=True))

    assert (refused.outcome, refused.error_kind) == ("error", "tls")
    assert taken.outcome == "ok"
