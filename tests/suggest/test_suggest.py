"""Objectives from history: arithmetic by hand, and the queries on a Prometheus that answers as told."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs

import pytest
import yaml

from inferwatch.promapi import Prometheus, Series
from inferwatch.stack.errors import StackError
from inferwatch.suggest import history, propose
from inferwatch.suggest.history import Answers, LatencyHistory, Span
from inferwatch.suggest.report import suggest
from slo import spec as slo_spec

SPEC = slo_spec.load()
# 10 000 requests: 9 400 within 0.5 s, 9 980 within 1 s, 9 999 within 2.5 s.
WHOLE = Span(10_000, {0.5: 9_400, 1.0: 9_980, 2.5: 9_999})
QUIET, STORM = Span(1_000, {0.5: 990, 1.0: 1_000, 2.5: 1_000}), Span(1_000, {0.5: 100, 1.0: 800, 2.5: 1_000})
HISTORY = LatencyHistory("request_duration", "x", WHOLE, (QUIET, STORM))


def test_the_lowest_bound_that_spends_half_the_budget_at_most() -> None:
    """95 % within 1 s spends 20/500 of the budget; 0.5 s would spend 600/500. 99.9 % needs 2.5 s: 1/10."""
    found = {p.objective: p for p in propose.latency_proposals(HISTORY, SPEC.budget)}

    assert {o: p.threshold_seconds for o, p in found.items()} == {0.95: 1.0, 0.99: 1.0, 0.999: 2.5}
    assert found[0.95].budget_spent == pytest.approx(0.04)
    assert found[0.99].budget_spent == pytest.approx(0.2)
    assert found[0.999].budget_spent == pytest.approx(0.1)


def test_an_hour_that_would_have_paged_is_counted() -> None:
    """99 % within 1 s: the quickest page starts at 14.4 % bad; the storm had 20 %, the quiet hour none."""
    cost = propose.latency_cost(HISTORY, 1.0, 0.99, SPEC.budget)

    assert (cost.paging_hours, cost.hours) == (1, 2)


def test_too_few_requests_prove_nothing() -> None:
    """100 requests allow one bad one at 99 %: fewer than the ten that a budget is judged on."""
    few = LatencyHistory("request_duration", "x", Span(100, {1.0: 100}), ())

    assert propose.latency_proposals(few, SPEC.budget) == []
    assert propose.latency_cost(few, 1.0, 0.99, SPEC.budget).enough is False


def test_a_young_history_is_not_called_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """340 s in a month's range of 6480 s steps: found at the last, then looked at every 16.2 s."""
    now, begun = 1_800_000_000.0, 1_800_000_000.0 - 340.0

    def query_range(
        self: Prometheus, expr: str, *, start: float, end: float, step_seconds: float
    ) -> list[Series]:
        times = [start + i * step_seconds for i in range(401) if begun <= start + i * step_seconds <= end]
        return [Series({}, tuple((at, 1.0) for at in times))] if times else []

    monkeypatch.setattr(Prometheus, "query_range", query_range)
    with Prometheus("http://127.0.0.1:1") as client:
        length = history.length_seconds(client, "", now, 30 * 86_400.0)

    assert length is not None
    assert 340.0 <= length <= 340.0 + 16.2


def test_availability_is_the_strictest_that_was_kept() -> None:
    """10 failures in 100 000 are 0.01 %: 99.95 % spends a fifth; 99.99 % would spend all of it."""
    answers = Answers("x", 100_000, 10, ((50_000, 10), (50_000, 0)))

    found = propose.availability_proposal(answers, SPEC.budget)
    assert found is not None
    assert (found.objective, round(found.budget_spent, 6)) == (0.9995, 0.2)
    assert propose.availability_cost(answers, 0.9999, SPEC.budget).budget_spent == pytest.approx(1.0)


class Told(ThreadingHTTPServer):
    """Answers queries on vLLM's own series: 1 000 requests, 990 within 1 s, ten more within 2 s."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.queries: list[str] = []
        self.has_history = True


class _Handler(BaseHTTPRequestHandler):
    server: Told

    def do_POST(self) -> None:
        asked = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.queries.append(asked["query"][0])
        text = json.dumps({"status": "success", "data": self._data(asked)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _data(self, asked: dict[str, list[str]]) -> dict[str, object]:
        query = asked["query"][0]
        if "start" in asked:
            first = float(asked["end"][0]) - 7_000
            found = [{"metric": {}, "values": [[first, "1"]]}] if self.server.has_history else []
            return {"resultType": "matrix", "result": found}
        buckets = {"1": 990, "2": 1_000, "+Inf": 1_000} if "vllm:e2e_request_latency" in query else {}
        result = [{"metric": {"le": le}, "value": [0, str(count)]} for le, count in buckets.items()]
        if re.search(r"increase\(http_requests_total", query):
            result = [{"metric": {"status": "2xx"}, "value": [0, "1000"]}]
        return {"resultType": "vector", "result": result}

    def log_message(self, format: str, *args: object) -> None:
        """Tests' output is for results."""


@pytest.fixture
def told() -> Iterator[Told]:
    """A Prometheus that somebody else runs, without our names and labels."""
    with Told() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_strangers_history_gives_lines_for_slo_yaml(told: Told) -> None:
    """vLLM's own names are read where ours are absent; what is printed is valid under services[].slos."""
    with Prometheus(f"http://127.0.0.1:{told.server_address[1]}") as client:
        found = suggest(client, SPEC, SPEC.services[0], 'pod=~"a.*"', None)
    text = found.shown()
    slos = yaml.safe_load(text[text.index("    slos:") :])["slos"]

    assert found.sources == {
        "request_duration": "vllm:e2e_request_latency_seconds",
        "availability": "http_requests_total",
    }
    # At 99 % 1 000 requests allow 10 bad ones; 10 were over 1 s, none over 2 s.
    assert [(s["id"], s["objective"], s.get("threshold_seconds")) for s in slos] == [
        ("availability", 0.99, None),
        ("request-latency", 0.99, 2),
    ]
    assert found.costs_now["request-latency"].budget_spent == 0
    assert all('pod=~"a.*"' in query for query in told.queries)
    assert "less than a week of history" in text


def test_no_history_is_said_and_not_made_up(told: Told) -> None:
    """Without any histogram there is nothing to propose."""
    told.has_history = False
    with (
        Prometheus(f"http://127.0.0.1:{told.server_address[1]}") as client,
        pytest.raises(StackError, match="has no latency histogram of an engine"),
    ):
        suggest(client, SPEC, SPEC.services[0], "", None)
