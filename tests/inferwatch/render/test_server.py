"""Pages on loopback: drawn now, with the reader's range and variables, and errors in words."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from inferwatch.promapi import Series
from inferwatch.render import server


@pytest.fixture
def folder(tmp_path: Path, panel: Any, dashboard: Any) -> Path:
    """One dashboard."""
    board = dashboard(panel("timeseries", ['x{service=~"$service"}']))
    (tmp_path / "d.json").write_text(json.dumps(board), encoding="utf-8")
    return tmp_path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, told: Any) -> list[str]:
    """Queries that reached Prometheus, which always answers with one series."""
    prometheus = told({"x": [Series({"a": "1"}, ((0, 1.0), (5, 2.0)))]})
    prometheus.__class__.__enter__ = lambda self: self
    prometheus.__class__.__exit__ = lambda self, *_: None
    monkeypatch.setattr(server, "Prometheus", lambda url: prometheus)
    found: list[str] = prometheus.asked
    return found


async def test_a_page_is_drawn_with_what_the_address_says(folder: Path, asked: list[str]) -> None:
    """?service=llm reaches the query; a second look a moment later does not ask again."""
    app = server.Pages("http://127.0.0.1:1", folder, 5).application()
    async with TestClient(TestServer(app)) as client:
        for _ in range(2):
            answer = await client.get("/d?range=15m&service=llm")
            assert answer.status == 200
            assert "<svg" in await answer.text()
    assert asked == ['x{service=~"llm"}']


async def test_a_link_made_for_grafana_shows_the_same_here(folder: Path, asked: list[str]) -> None:
    """The link of an alert: var-service is picked, a variable that the page lacks and All are left out."""
    app = server.Pages("http://127.0.0.1:1", folder, 5).application()
    async with TestClient(TestServer(app)) as client:
        path = "/d/d/some-title?orgId=1&var-service=llm&var-model=m&from=1790000000000&to=1790003600000"
        answer = await client.get(path)
        assert answer.status == 200
        assert "one point every 15 s" in await answer.text()
        assert (await client.get("/d/d?var-service=All&from=now-6h&to=now")).status == 200
        backwards = await client.get("/d/d?from=1790003600000&to=1790000000000")
        assert (backwards.status, "is not before to" in await backwards.text()) == (400, True)
    assert asked == ['x{service=~"llm"}', 'x{service=~".*"}']


async def test_a_runbook_is_served_by_its_alerts_name(folder: Path, tmp_path: Path) -> None:
    """The link of a notification opens it; a name that is none, a path among them, is answered with 404."""
    (tmp_path / "runbooks").mkdir()
    (tmp_path / "runbooks" / "EngineHung.md").write_text("# EngineHung\n\nRestart — then ask.\n", "utf-8")
    app = server.Pages("http://127.0.0.1:1", folder, 5, tmp_path / "runbooks").application()
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/runbooks/EngineHung.md")
        assert (answer.status, answer.content_type) == (200, "text/plain")
        assert await answer.text() == "# EngineHung\n\nRestart — then ask.\n"
        unknown = await client.get("/runbooks/..%2Fd.json")
        assert (unknown.status, "there are: EngineHung" in await unknown.text()) == (404, True)


async def test_the_root_goes_to_the_first_dashboard(folder: Path) -> None:
    """A bare address shows something."""
    app = server.Pages("http://127.0.0.1:1", folder, 5).application()
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/", allow_redirects=False)
        assert (answer.status, answer.headers["Location"]) == (302, "/d")


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/nope", 404, "no dashboard 'nope'; there are: d"),
        ("/d?range=soon", 400, "no time range"),
        ("/d?theme=pink", 400, "give auto, dark or light"),
        ("/d?modle=x", 400, "no variable modle"),
    ],
)
async def test_a_wrong_address_is_told(
    folder: Path, asked: list[str], path: str, status: int, said: str
) -> None:
    """What is wrong and what there is."""
    del asked
    app = server.Pages("http://127.0.0.1:1", folder, 5).application()
    async with TestClient(TestServer(app)) as client:
        answer = await client.get(path)
        assert answer.status == status
        assert said in await answer.text()


async def test_a_prometheus_that_is_gone_is_told(folder: Path, panel: Any, dashboard: Any) -> None:
    """502 and not an empty page: annotations cannot be asked for."""
    alerts = {"name": "Alerts", "expr": "ALERTS", "iconColor": "#D55E00"}
    board = dashboard(panel("stat", ["x"]), annotations=[alerts])
    (folder / "d.json").write_text(json.dumps(board), encoding="utf-8")
    app = server.Pages("http://127.0.0.1:1", folder, 5).application()
    async with TestClient(TestServer(app)) as client:
        answer = await client.get("/d")
        assert answer.status == 502
        assert "cannot be asked" in await answer.text()
