"""The house style: what grafanalib would write of old never reaches a dashboard."""

import json
from typing import Any

import pytest

from dashboards.registry import DASHBOARDS, build_all
from slo.spec import load

BOARDS = build_all(load())


def walk(value: Any) -> list[tuple[str, Any]]:
    """Every (key, value) at any depth."""
    if isinstance(value, dict):
        return [pair for k, v in value.items() for pair in [(k, v), *walk(v)]]
    return [pair for v in value for pair in walk(v)] if isinstance(value, list) else []


@pytest.mark.parametrize("uid", BOARDS)
def test_nothing_of_the_old_defaults_is_left(uid: str) -> None:
    """Keys of Grafana 6 to 8, string thresholds, and nulls but the one JSON needs for "from minus infinity"."""
    pairs = walk(BOARDS[uid])
    keys = {key for key, _ in pairs}
    assert not keys & {
        "intervalFactor",
        "step_",
        "rows",
        "__inputs",
        "cards",
        "fieldOptions",
        "yaxes",
        "metric",
    }
    assert BOARDS[uid]["schemaVersion"] == 41
    for key, value in pairs:
        if key == "steps" and isinstance(value, list):
            assert value[0]["value"] is None
            assert all(isinstance(step["value"], int | float) for step in value[1:])
            assert [s["value"] for s in value[1:]] == sorted(s["value"] for s in value[1:])
    assert sum(value is None for _, value in pairs) == sum(
        key == "steps" and isinstance(v, list) for key, v in pairs
    )


@pytest.mark.parametrize("uid", BOARDS)
def test_a_page_can_be_narrowed_and_left(uid: str) -> None:
    """A data source variable, multi-value variables with All as a pattern, links that keep time and variables."""
    variables = BOARDS[uid]["templating"]["list"]
    assert variables[0]["type"] == "datasource"
    for one in variables[1:]:
        assert (one["multi"], one["includeAll"], one["allValue"]) == (True, True, ".*")
        assert one["current"]["value"] == ["$__all"]
    (link,) = BOARDS[uid]["links"]
    assert (link["keepTime"], link["includeVars"], link["tags"]) == (True, True, ["inferwatch"])
    assert "inferwatch" in BOARDS[uid]["tags"]


@pytest.mark.parametrize("uid", BOARDS)
def test_a_title_asks_and_the_first_panel_answers(uid: str) -> None:
    """The page is a question; top left stands a number or a state."""
    board = BOARDS[uid]
    assert board["title"].endswith("?")
    first = board["panels"][0]
    assert (first["gridPos"]["x"], first["gridPos"]["y"]) == (0, 0)
    assert first["type"] == "stat"


@pytest.mark.parametrize("uid", BOARDS)
def test_alerts_are_marked_on_every_page(uid: str) -> None:
    """A reader sees when an alert began."""
    assert "Alerts" in [one["name"] for one in BOARDS[uid]["annotations"]["list"]]


@pytest.mark.parametrize("uid", BOARDS)
def test_exemplars_are_asked_of_histograms_only(uid: str) -> None:
    """A gauge has none; a raw latency histogram links to its traces."""
    for panel in BOARDS[uid]["panels"]:
        for target in panel.get("targets", ()):
            assert not target["exemplar"] or "_bucket" in target["expr"]
    if uid == "inferwatch-engine":
        asked = {p["title"] for p in BOARDS[uid]["panels"] for t in p.get("targets", ()) if t["exemplar"]}
        assert {"Time to first token", "Inter-token latency", "Whole request"} <= asked


def test_building_twice_gives_the_same() -> None:
    """Generated files are compared byte by byte."""
    again = build_all(load())
    assert json.dumps(again, sort_keys=True) == json.dumps(BOARDS, sort_keys=True)
    assert len(again) == len(DASHBOARDS)
