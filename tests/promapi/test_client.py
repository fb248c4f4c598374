"""The client against a server that answers as Prometheus and Alertmanager do, and as they should not."""

import math
from collections.abc import Callable, Iterator

import pytest

from inferwatch.promapi import Alertmanager, PromError, Prometheus

from .scripted import Answer, Scripted, scripted


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    """Serve these answers; returns the base URL."""
    with scripted() as start:
        yield start


def success(kind: str, result: object, **more: object) -> Answer:
    """Prometheus' envelope."""
    return 200, {"status": "success", "data": {"resultType": kind, "result": result}, **more}


def test_a_vector_gives_samples_with_prometheus_own_numbers(serve: Callable[..., str]) -> None:
    """NaN and infinities arrive as such: they are answers, not zeros."""
    url = serve(
        {
            "/api/v1/query": success(
                "vector",
                [
                    {"metric": {"model": "a"}, "value": [100.5, "0.25"]},
                    {"metric": {"model": "b"}, "value": [100.5, "NaN"]},
                    {"metric": {}, "value": [100.5, "+Inf"]},
                ],
            )
        }
    )
    with Prometheus(url) as client:
        found = client.query('up{a="b"}', at=100.5)

    assert [(s.labels, s.timestamp) for s in found] == [
        ({"model": "a"}, 100.5),
        ({"model": "b"}, 100.5),
        ({}, 100.5),
    ]
    assert found[0].value == 0.25
    assert math.isnan(found[1].value)
    assert found[2].value == math.inf
    method, path, params, _ = Scripted.asked[0]
    assert (method, path) == ("POST", "/api/v1/query")
    assert params == {"query": ['up{a="b"}'], "time": ["100.500"]}


def test_no_series_is_an_empty_list_and_no_value(serve: Callable[..., str]) -> None:
    """What Prometheus does not know is never zero."""
    url = serve({"/api/v1/query": success("vector", [])})
    with Prometheus(url) as client:
        assert client.query("nothing") == []
        assert client.value("nothing") is None


def test_a_scalar_is_one_sample_without_labels(serve: Callable[..., str]) -> None:
    """`scalar(…)` and plain numbers can be asked for."""
    url = serve({"/api/v1/query": success("scalar", [7, "42"])})
    with Prometheus(url) as client:
        assert client.value("42") == 42.0


def test_one_value_of_several_series_is_an_error(serve: Callable[..., str]) -> None:
    """A number is never picked at random."""
    entry = {"metric": {}, "value": [1, "1"]}
    url = serve({"/api/v1/query": success("vector", [entry, entry])})
    with (
        Prometheus(url) as client,
        pytest.raises(PromError, match="'up' gave 2 series where one was expected"),
    ):
        client.value("up")


def test_a_range_gives_series_in_time_order(serve: Callable[..., str]) -> None:
    """Times are Unix seconds; the step goes out in seconds."""
    url = serve(
        {"/api/v1/query_range": success("matrix", [{"metric": {"a": "b"}, "values": [[1, "1"], [6, "2.5"]]}])}
    )
    with Prometheus(url) as client:
        found = client.query_range("x", start=1, end=6, step_seconds=5)

    assert [(s.labels, s.points) for s in found] == [({"a": "b"}, ((1.0, 1.0), (6.0, 2.5)))]
    assert Scripted.asked[0][2] == {"query": ["x"], "start": ["1.000"], "end": ["6.000"], "step": ["5"]}


def test_a_refused_query_carries_prometheus_words(serve: Callable[..., str]) -> None:
    """A syntax error is HTTP 400 with an explanation: it reaches the person."""
    url = serve(
        {"/api/v1/query": (400, {"status": "error", "errorType": "bad_data", "error": "unclosed brace"})}
    )
    with Prometheus(url) as client, pytest.raises(PromError, match=r"refused up\{: unclosed brace"):
        client.query("up{")


def test_native_histograms_are_refused_not_dropped(serve: Callable[..., str]) -> None:
    """A series that has no plain value is an error that says what to ask instead."""
    url = serve({"/api/v1/query": success("vector", [{"metric": {"a": "b"}, "histogram": [1, {}]}])})
    with (
        Prometheus(url) as client,
        pytest.raises(PromError, match="native histogram; take histogram_quantile"),
    ):
        client.query("h")


def test_warnings_are_logged(serve: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    """What Prometheus warns of is not swallowed."""
    url = serve({"/api/v1/query": success("vector", [], warnings=["partial"], infos=["not a counter"])})
    with Prometheus(url) as client:
        client.query("x")

    assert [record.getMessage().rsplit(": ", 1)[1] for record in caplog.records] == [
        "partial",
        "not a counter",
    ]


def test_series_targets_rules_and_alerts(serve: Callable[..., str]) -> None:
    """The other four reads, on bodies as Prometheus 3.14 sends them."""
    alert = {
        "labels": {"alertname": "EngineDown"},
        "annotations": {"summary": "s"},
        "state": "firing",
        "activeAt": "2026-11-29T18:00:00.5Z",
        "value": "1e+00",
    }
    rule = {
        "name": "EngineDown",
        "type": "alerting",
        "query": "q",
        "health": "ok",
        "lastError": "",
        "labels": {"severity": "page"},
        "state": "firing",
        "alerts": [alert],
        "evaluationTime": 0.002,
    }
    target = {
        "labels": {"job": "llm-engine", "instance": "http://e:1"},
        "scrapeUrl": "http://x/probe",
        "health": "down",
        "lastError": "refused",
        "lastScrape": "0001-01-01T00:00:00Z",
    }
    url = serve(
        {
            "/api/v1/series": (200, {"status": "success", "data": [{"__name__": "up"}]}),
            "/api/v1/targets": (200, {"status": "success", "data": {"activeTargets": [target]}}),
            "/api/v1/rules": (
                200,
                {
                    "status": "success",
                    "data": {"groups": [{"name": "g", "file": "f", "interval": 5, "rules": [rule]}]},
                },
            ),
            "/api/v1/alerts": (200, {"status": "success", "data": {"alerts": [alert]}}),
        }
    )
    with Prometheus(url) as client:
        assert client.series(["up", "x"], start=1.0) == [{"__name__": "up"}]
        (seen,) = client.targets()
        (group,) = client.rules()
        (firing,) = client.alerts()

    assert Scripted.asked[0][2] == {"match[]": ["up", "x"], "start": ["1.000"]}
    assert (seen.job, seen.instance, seen.health, seen.last_error) == (
        "llm-engine",
        "http://e:1",
        "down",
        "refused",
    )
    assert seen.last_scrape is None
    assert (group.name, group.interval_seconds, group.rules[0].kind) == ("g", 5.0, "alerting")
    assert group.rules[0].alerts == (firing,)
    assert (firing.name, firing.state, firing.value) == ("EngineDown", "firing", 1.0)
    # 2026-11-29T18:00:00.5Z: 20786 days after 1970-01-01, and 64800.5 s.
    assert firing.active_at == 20786 * 86400 + 64800.5


def test_alertmanager_lists_what_it_holds(serve: Callable[..., str]) -> None:
    """Silenced and inhibited alerts are listed with what holds them back."""
    url = serve(
        {
            "/api/v2/alerts": (
                200,
                [
                    {
                        "labels": {"alertname": "A"},
                        "annotations": {},
                        "startsAt": "1970-01-01T00:01:00Z",
                        "fingerprint": "f",
                        "status": {"state": "suppressed", "silencedBy": ["s"], "inhibitedBy": []},
                    }
                ],
            )
        }
    )
    with Alertmanager(url) as client:
        (alert,) = client.alerts()

    assert (alert.name, alert.state, alert.active_at, alert.fingerprint) == ("A", "suppressed", 60.0, "f")
    assert (alert.silenced_by, alert.inhibited_by) == (("s",), ())


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ((200, "<html>"), "something that is not JSON .*is this the right server"),
        ((502, "bad gateway"), "HTTP 502 with something that is not JSON"),
        ((302, "{}"), r"HTTP 302: \{\}"),
        ((200, "[1]"), r"refused up: \[1\]"),
        (success("string", [1, "x"]), "gave a string, not numbers"),
    ],
)
def test_what_is_not_prometheus_is_said(serve: Callable[..., str], answer: Answer, says: str) -> None:
    """Proxies, redirects and other servers are errors that name the address; no redirect is followed."""
    url = serve({"/api/v1/query": answer})
    with Prometheus(url) as client, pytest.raises(PromError, match=says):
        client.query("up")
    assert [path for _, path, _, _ in Scripted.asked] == ["/api/v1/query"]


def test_an_absent_server_is_not_ready_and_cannot_be_queried() -> None:
    """Nothing listens on port 9: readiness is False, a query is an error with the mend."""
    with Prometheus("http://127.0.0.1:9") as client:
        assert client.is_ready() is False
        with pytest.raises(
            PromError,
            match=r"127\.0\.0\.1:9 cannot be reached \(\[Errno 111\] Connection refused\); is it running there",
        ):
            client.query("up")


def test_a_token_is_sent(serve: Callable[..., str]) -> None:
    """A protected Prometheus gets its bearer token."""
    url = serve({"/api/v1/query": success("vector", [])})
    with Prometheus(url, bearer_token="secret") as client:
        client.query("up")

    assert Scripted.asked[0][3]["Authorization"] == "Bearer secret"


def test_reload_is_a_post_and_its_refusal_an_error(serve: Callable[..., str]) -> None:
    """Prometheus answers a reload of a broken file with 500 and the reason."""
    url = serve({"/-/reload": (500, "failed to reload config: bad yaml")})
    with (
        Prometheus(url) as client,
        pytest.raises(PromError, match=r"/-/reload answered HTTP 500: failed .*bad yaml"),
    ):
        client.reload()


@pytest.mark.parametrize("url", ["localhost:9090", "ftp://host", "", "http://"])
def test_a_base_url_must_be_http(url: str) -> None:
    """A base URL without scheme is the usual mistake; the error shows how it looks."""
    with pytest.raises(PromError, match="is not an http"):
        Prometheus(url)
