"""The client never blocks or raises; what did not arrive is a count."""

import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from inferwatch.drift_client import DriftClient, Stats

ROOT = Path(__file__).parents[2]


class Exporter(ThreadingHTTPServer):
    """Remembers what it got and answers with `status`; waits for `gate` first."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, str, bytes]] = []
        self.status = 200
        self.gate = threading.Event()
        self.gate.set()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """Takes any POST."""

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Exporter)
        server.gate.wait(10)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.got.append(
            (self.path, self.headers["Content-Type"], self.headers.get("Authorization", ""), body)
        )
        self.send_response(server.status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    """A server in a thread."""
    server = Exporter()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.gate.set()
    server.shutdown()
    thread.join()
    server.server_close()


def test_lists_go_as_json_and_arrays_as_npy(exporter: Exporter) -> None:
    """Model, version and tenant go with both, the token in front."""
    with DriftClient(exporter.url, "m", version="2", tenant="t", token="secret") as client:
        client.embeddings([[1.0, 2.0]])
        client.embeddings(np.array([[3.0, 4.0]]), tenant="u")
        assert client.flush()
        assert client.stats() == Stats(sent=2)
    (path, kind, token, body), (query, npy_kind, _, npy) = exporter.got

    assert (path, kind, token) == ("/v1/vectors", "application/json", "Bearer secret")
    assert json.loads(body) == {"model": "m", "version": "2", "tenant": "t", "vectors": [[1.0, 2.0]]}
    assert (query, npy_kind) == ("/v1/vectors?model=m&version=2&tenant=u", "application/x-npy")
    assert np.load(io.BytesIO(npy)).tolist() == [[3.0, 4.0]]


def test_a_retrieval_is_told(exporter: Exporter) -> None:
    """Scores, seconds, characters."""
    with DriftClient(exporter.url, "m") as client:
        client.retrieval([0.9, 0.5], seconds=0.25, query_characters=12)
        assert client.flush()

    assert json.loads(exporter.got[0][3]) == {
        "tenant": "",
        "retrievals": [{"scores": [0.9, 0.5], "seconds": 0.25, "query_characters": 12}],
    }


def test_a_full_queue_drops_and_returns_at_once(exporter: Exporter) -> None:
    """The exporter holds the first call; two wait, and seven of ten are dropped, none blocks."""
    exporter.gate.clear()
    client = DriftClient(exporter.url, "m", queue=2)
    client.embeddings([[1.0]])
    while client._queue:
        threading.Event().wait(0.005)
    for _ in range(9):
        client.embeddings([[1.0]])

    assert client.stats().dropped == 7
    exporter.gate.set()
    client.close()
    assert client.stats().sent == 3


def test_nobody_listens_and_nothing_is_raised() -> None:
    """The call fails in the background and is counted."""
    client = DriftClient("http://127.0.0.1:9", "m")
    client.embeddings([[1.0]])
    client.close(0.5)

    assert client.stats().failed == 1


@pytest.mark.parametrize(("status", "expected"), [(500, Stats(failed=1)), (401, Stats(refused=1))])
def test_answers_that_are_no_200(exporter: Exporter, status: int, expected: Stats) -> None:
    """The server's fault is a failure, ours a refusal."""
    exporter.status = status
    with DriftClient(exporter.url, "m") as client:
        client.embeddings([[1.0]])
        client.flush()
        assert client.stats() == expected


def test_arguments_that_are_no_vectors_are_refused_in_the_background(exporter: Exporter) -> None:
    """The caller's thread sees no exception."""
    with DriftClient(exporter.url, "m") as client:
        client.embeddings("text")
        client.embeddings([1, 2])
        client.embeddings(np.zeros(3))
        client.retrieval(["x"])  # type: ignore[list-item] # wrong on purpose
        client.flush()
        assert client.stats() == Stats(refused=4)
    assert exporter.got == []


def test_the_ratio_decides_what_is_sent(exporter: Exporter) -> None:
    """0: nothing; each call is counted as skipped."""
    with DriftClient(exporter.url, "m", sample_ratio=0.0) as client:
        for _ in range(5):
            client.embeddings([[1.0]])
        assert client.stats() == Stats(skipped=5)


def test_wrong_settings_are_errors_at_once() -> None:
    """A URL without a host, a ratio over 1."""
    with pytest.raises(ValueError, match="is no base URL"):
        DriftClient("localhost:9484", "m")
    with pytest.raises(ValueError, match="sample_ratio"):
        DriftClient("http://127.0.0.1:9", "m", sample_ratio=2)


def test_it_needs_nothing_but_the_standard_library() -> None:
    """Imported with no site packages, it loads no module of ours but its own."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import inferwatch.drift_client\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('inferwatch', 'exporters', 'slo', 'numpy')))"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == str(
        [
            "inferwatch",
            "inferwatch.drift_client",
            "inferwatch.drift_client.body",
            "inferwatch.drift_client.client",
        ]
    )


class _Bad:
    """An array that cannot be had."""

    def __array__(self, *_: object) -> object:
        raise KeyError("gone")


def test_whatever_is_given_the_thread_lives_on(exporter: Exporter) -> None:
    """An array that raises, a number beyond floats: refused, and what comes after is sent."""
    with DriftClient(exporter.url, "m") as client:
        client.embeddings(_Bad())
        client.retrieval([10**400])
        client.embeddings([[1.0, 2.0]])
        assert client.flush()

        assert client.stats() == Stats(sent=1, refused=2)


def test_a_token_that_no_header_can_carry_is_refused_and_does_not_end_the_thread(exporter: Exporter) -> None:
    """A line break in it, each time."""
    with DriftClient(exporter.url, "m", token="a\nb") as client:
        client.embeddings([[1.0, 2.0]])
        client.embeddings([[1.0, 2.0]])
        assert client.flush()

        assert client.stats() == Stats(refused=2)
