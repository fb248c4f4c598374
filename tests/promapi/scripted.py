"""A server whose answers a test writes, path by path; it remembers what was asked."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

Answer = tuple[int, object]


class Scripted(BaseHTTPRequestHandler):
    """Answers each path as the test wrote it, and remembers what was asked."""

    answers: ClassVar[dict[str, Answer]] = {}
    asked: ClassVar[list[tuple[str, str, dict[str, list[str]], dict[str, str]]]] = []

    def do_GET(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self._answer(parse_qs(body))

    def _answer(self, form: dict[str, list[str]]) -> None:
        parts = urlsplit(self.path)
        params = parse_qs(parts.query) | form
        self.asked.append((self.command, parts.path, params, dict(self.headers)))
        status, content = self.answers.get(parts.path, (404, "not here"))
        body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def scripted() -> Iterator[Callable[[dict[str, Answer]], str]]:
    """Serve these answers; returns the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()

    def start(answers: dict[str, Answer]) -> str:
        Scripted.answers, Scripted.asked = answers, []
        return f"http://127.0.0.1:{server.server_address[1]}"

    try:
        yield start
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
