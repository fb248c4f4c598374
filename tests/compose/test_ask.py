"""The health check of our images: 0 only for a 200."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from inferwatch.stack import ask


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/ready" else 503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Tests' output is for results."""


@pytest.fixture
def url() -> Iterator[str]:
    """A server that is ready on /ready and not elsewhere."""
    with HTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_only_200_is_healthy(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A 503 is not, and says so."""
    assert ask.main([f"{url}/ready"]) == 0
    assert ask.main([f"{url}/other"]) == 1
    assert "HTTP Error 503" in capsys.readouterr().err


def test_nobody_listening_and_no_url(capsys: pytest.CaptureFixture[str]) -> None:
    """A refused connection is 1, a wrong call 2."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert ask.main([f"http://127.0.0.1:{port}/"]) == 1
    assert "refused" in capsys.readouterr().err
    assert ask.main([]) == 2
