"""The sender of the stage `drift`: what reaches an exporter's ingest port, and what changes when it is switched."""

import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from inferwatch.scenarios.drift_sender import Service
from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.drift_vectors import Space


class Ingest(ThreadingHTTPServer):
    """Keeps what it is sent: path, query, body."""

    told: list[tuple[str, dict[str, list[str]], bytes]]

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        assert isinstance(self.server, Ingest)
        self.server.told.append((parts.path, parse_qs(parts.query), body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def ingest() -> Iterator[Ingest]:
    """A server in the exporter's place."""
    server = Ingest(("127.0.0.1", 0), _Handler)
    server.told = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    """A service of that name; its client ends with the test."""
    one = Service(Space())
    yield one
    one.close()


def delivered(service: Service) -> None:
    """Wait until everything that was told has arrived."""
    assert service._client is not None
    assert service._client.flush()


def test_a_second_of_a_healthy_service(ingest: Ingest, service: Service) -> None:
    """One batch of 15 vectors under the model's name, and two retrievals that found something alike in 50 ms."""
    service.show(ingest.url, Sent())
    service.tell()
    delivered(service)
    (vectors,) = [one for one in ingest.told if one[0] == "/v1/vectors"]
    assert vectors[1]["model"] == ["synthetic-64"]
    assert np.load(io.BytesIO(vectors[2])).shape == (15, 64)
    found = [json.loads(body)["retrievals"] for path, _, body in ingest.told if path == "/v1/retrievals"]
    assert [(len(one), one[0]["seconds"], max(one[0]["scores"])) for one in found] == [(1, 0.05, 0.82)] * 2
    assert service.stats()["sent"] == 3


def test_what_is_spoiled_is_sent_all_the_same(ingest: Ingest, service: Service) -> None:
    """Ten stand beside the 15, and the exporter is to count them."""
    service.show(ingest.url, Sent(unusable=10, retrievals=0))
    service.tell()
    delivered(service)
    vectors = np.load(io.BytesIO(ingest.told[0][2]))
    assert len(vectors) == 25
    assert int((np.isnan(vectors).any(axis=1) | ~vectors.any(axis=1)).sum()) == 10


def test_poor_retrievals_are_empty_or_low(ingest: Ingest, service: Service) -> None:
    """In turn, and all of them where the share is 1; 0.3 is where low begins."""
    service.show(ingest.url, Sent(vectors=0, poor=1.0, retrievals=4))
    service.tell()
    delivered(service)
    found = [
        json.loads(body)["retrievals"][0]["scores"] for path, _, body in ingest.told if "retrievals" in path
    ]
    assert [bool(scores) for scores in found] == [False, True, False, True]
    assert all(max(scores) < 0.3 for scores in found if scores)


def test_another_model_begins_another_client(ingest: Ingest, service: Service) -> None:
    """The name changes with the next batch; what was sent before stays counted."""
    service.show(ingest.url, Sent(retrievals=0))
    service.tell()
    delivered(service)
    service.show(ingest.url, Sent(model="other", retrievals=0))
    service.tell()
    delivered(service)
    assert [query["model"] for _, query, _ in ingest.told] == [["synthetic-64"], ["other"]]
    assert service.stats()["sent"] == 2


def test_all_send_the_same_healthy_vectors_in_every_run(ingest: Ingest) -> None:
    """Second by second, whatever cannot be used beside them."""
    for sent in (Sent(retrievals=0), Sent(retrievals=3, unusable=4)):
        one = Service(Space())
        one.show(ingest.url, sent)
        one.tell()
        one.tell()
        delivered(one)
        one.close()
    batches = [np.load(io.BytesIO(body)) for path, _, body in ingest.told if path == "/v1/vectors"]
    assert (batches[0] == batches[2][:15]).all()
    assert (batches[1] == batches[3][:15]).all()
    assert (batches[0] != batches[1]).any()
