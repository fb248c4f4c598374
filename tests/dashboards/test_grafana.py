"""A Grafana that answers as its HTTP API is documented: what is sent, and which answers are faults."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dashboards.grafana import Grafana, GrafanaError, from_environment, verify
from dashboards.registry import build_all
from slo.spec import load

BOARDS = {"inferwatch-slo": build_all(load())["inferwatch-slo"]}


class Api(ThreadingHTTPServer):
    """Keeps what was loaded and asked; *lose* drops a panel, *query_error* fails queries."""

    loaded: dict[str, Any]
    asked: list[Any]
    tokens: set[str]
    lose = False
    query_error = ""
    sources: list[Any]


class Handler(BaseHTTPRequestHandler):
    """The five calls that are made."""

    server: Api

    def log_message(self, *_: Any) -> None:
        """Quiet."""

    def answer(self, body: Any, status: int = 200) -> None:
        """JSON."""
        self.server.tokens.add(self.headers.get("Authorization", ""))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        """Health, data sources, a dashboard."""
        if self.path == "/api/health":
            return self.answer({"database": "ok", "version": "13.2.0"})
        if self.path == "/api/datasources":
            return self.answer(self.server.sources)
        board = dict(self.server.loaded[self.path.rsplit("/", 1)[-1]])
        if self.server.lose:
            board["panels"] = board["panels"][1:]
        return self.answer({"dashboard": board})

    def do_POST(self) -> None:
        """Load, query."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/api/dashboards/db":
            assert body["overwrite"] is True
            self.server.loaded[body["dashboard"]["uid"]] = body["dashboard"]
            return self.answer({"status": "success"})
        self.server.asked += body["queries"]
        error = {"error": self.server.query_error} if self.server.query_error else {}
        return self.answer({"results": {q["refId"]: error for q in body["queries"]}})


@pytest.fixture
def api() -> Iterator[Api]:
    """The server on loopback."""
    server = Api(("127.0.0.1", 0), Handler)
    server.loaded, server.asked, server.tokens = {}, [], set()
    server.sources = [
        {"uid": "other", "type": "loki"},
        {"uid": "prom-1", "type": "prometheus", "isDefault": True},
    ]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def grafana(api: Api) -> Grafana:
    """With a token."""
    url = f"http://127.0.0.1:{api.server_address[1]}"
    return from_environment({"GRAFANA_URL": url, "GRAFANA_TOKEN": "secret"})


def test_every_dashboard_is_loaded_and_every_query_asked(api: Api) -> None:
    """On the Prometheus there is, with every variable on All."""
    assert verify(BOARDS, grafana(api)) == []
    assert list(api.loaded) == ["inferwatch-slo"]
    queries = sum(len(p.get("targets", ())) for p in BOARDS["inferwatch-slo"]["panels"])
    assert len(api.asked) == queries
    assert {q["datasource"]["uid"] for q in api.asked} == {"prom-1"}
    assert not [q for q in api.asked if '"$' in q["expr"]]
    assert api.tokens == {"Bearer secret"}


def test_a_lost_panel_and_a_failed_query_are_faults(api: Api) -> None:
    """A migration that drops a panel, a data source that refuses."""
    api.lose, api.query_error = True, "bad_data"
    faults = verify(BOARDS, grafana(api))
    panels = len(BOARDS["inferwatch-slo"]["panels"])
    assert f"inferwatch-slo: {panels - 1} panels came back of {panels}" in faults
    assert "inferwatch-slo: Burn rate (A): bad_data" in faults


def test_a_grafana_without_prometheus_is_told(api: Api) -> None:
    """Nothing could show data there."""
    api.sources = []
    with pytest.raises(GrafanaError, match="no Prometheus data source"):
        verify(BOARDS, grafana(api))


def test_without_a_url_it_says_what_to_set() -> None:
    """And a Grafana that is not there is named."""
    with pytest.raises(GrafanaError, match="GRAFANA_URL is not set"):
        from_environment({})
    with pytest.raises(GrafanaError, match="cannot be reached"):
        verify(BOARDS, from_environment({"GRAFANA_URL": "http://127.0.0.1:1"}))
