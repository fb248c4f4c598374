"""Annotations against a stand-in of Grafana's API, and live series on a port."""

import http.server
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loadtests.annotate import Annotation, AnnotationError
from loadtests.liveserver import live_series
from loadtests.plan import open_loop, parse_plan


@pytest.fixture
def grafana() -> Iterator[Any]:
    """A server that keeps what it is sent in `calls` and answers with an id, or 401 without the right token."""
    calls: list[tuple[str, str, dict[str, Any]]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def _take(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            calls.append((self.command, self.path, body))
            right = self.headers.get("authorization") == "Bearer secret"
            answer = b'{"id": 7}' if right else b"{}"
            self.send_response(200 if right else 401)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_PATCH = _take  # the names that http.server asks for

        def log_message(self, format: str, *args: object) -> None:
            """Keep test output clean."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.calls = calls  # type: ignore[attr-defined] # the test's own
    yield server
    server.shutdown()
    thread.join(10)
    server.server_close()


def test_a_run_becomes_a_region(grafana: Any, tmp_path: Path) -> None:
    """Posted at its begin, stretched to its end, in milliseconds, under one tag."""
    (tmp_path / "token").write_text("secret\n", encoding="utf-8")
    note = Annotation(f"http://127.0.0.1:{grafana.server_port}/", tmp_path / "token", "run", 100.5)
    note.end(160.0, "run, 9 requests")

    assert grafana.calls == [
        ("POST", "/api/annotations", {"time": 100_500, "tags": ["load-run"], "text": "run"}),
        ("PATCH", "/api/annotations/7", {"timeEnd": 160_000, "text": "run, 9 requests"}),
    ]


def test_a_refusal_is_an_error_with_its_mend(grafana: Any) -> None:
    """A wrong token is told, not passed over."""
    with pytest.raises(AnnotationError, match="may the token write annotations"):
        Annotation(f"http://127.0.0.1:{grafana.server_port}", None, "run", 1.0)


def test_live_series_are_served_and_the_port_is_given_back(tmp_path: Path) -> None:
    """A scraper reads the run while the block lasts, and finds nothing after."""
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": open_loop(5, 60)})
    with live_series(plan, tmp_path, time.time(), 0) as port:
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode()

    assert f'llm_load_run_info{{arrival="open",model="m",run="{tmp_path.name}"}} 1.0' in text
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5)
