"""Dashboards that are not ours lack keys; they are drawn with Grafana's defaults, or say what is not drawn."""

from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.canvas import Text
from inferwatch.render.complete import complete
from inferwatch.render.page import draw
from inferwatch.render.variables import window

BARE = {
    "uid": "theirs",
    "title": "Theirs",
    "templating": {},
    "annotations": {"list": [{"builtIn": 1, "name": "Annotations & Alerts", "iconColor": "rgba(0, 211, 255, 1)"},
                             {"name": "New", "target": {"expr": "ALERTS", "refId": "Anno"}}]},
    "panels": [
        {"type": "timeseries", "title": "Lines", "targets": [{"expr": "x", "intervalFactor": 2}, {"expr": ""}]},
        {"type": "stat", "title": "Number", "targets": [{"expr": "x", "instant": None}], "options": None},
        {"type": "heatmap", "title": "Cells", "targets": [{"expr": "h", "format": "heatmap"}]},
        {"type": "text", "title": "Words", "options": {"content": "hello"}},
    ],
}  # fmt: skip


def test_a_bare_dashboard_is_drawn(told: Any) -> None:
    """Lines, a number and cells; a text panel says that it is not drawn."""
    histogram = [Series({"le": "1"}, ((0, 1.0),)), Series({"le": "+Inf"}, ((0, 2.0),))]
    prometheus = told({"ALERTS": [], "x": [Series({"a": "1"}, ((0, 1.0), (5, 2.0)))], "h": histogram})
    page = draw(BARE, prometheus, window(0, 100, 5))
    assert [p.state for p in page.panels] == ["data", "data", "data", "error"]
    words = [s.text for s in page.panels[3].canvas.shapes if isinstance(s, Text)]
    assert "the renderer does not draw text panels" in words
    assert len({(p.x, p.y) for p in page.panels}) == 4


def test_annotations_without_a_query_are_left_out() -> None:
    """Grafana's built-in one has none; a newer one keeps it in its target."""
    assert [(one["name"], one["expr"]) for one in complete(BARE)["annotations"]["list"]] == [
        ("New", "ALERTS")
    ]


def test_what_is_there_is_kept(panel: Any, dashboard: Any) -> None:
    """Nothing of ours changes but what was missing."""
    board = dashboard(panel("stat", ["x"]))
    (before,), (after,) = board["panels"], complete(board)["panels"]
    assert {key: after[key] for key in before} == before


def test_a_variable_without_all_takes_its_first_value(told: Any) -> None:
    """`m="$model"` matches one value only: the current one, else the first that Prometheus knows."""
    prometheus = told({})
    prometheus.series = lambda matchers: [{"model_name": "b"}, {"model_name": "a"}, {}]
    variables = [
        {"type": "query", "name": "model", "query": "label_values(vllm:x, model_name)"},
        {"type": "query", "name": "job", "query": "label_values(up, job)", "current": {"value": "vllm"}},
    ]
    panel = {"type": "stat", "targets": [{"expr": 'x{m="$model",job="$job"}'}]}
    draw({**BARE, "templating": {"list": variables}, "panels": [panel]}, prometheus, window(0, 100, 5))
    assert 'x{m="a",job="vllm"}' in prometheus.asked
