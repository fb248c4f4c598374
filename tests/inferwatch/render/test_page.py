"""A dashboard becomes a page: panels where they belong, each with data, empty, or its error in words."""

from typing import Any

import pytest

from inferwatch.promapi import PromError, Series
from inferwatch.render.canvas import Line, Text
from inferwatch.render.page import draw, draw_panel
from inferwatch.render.variables import window

VIEW = window(0, 100, 5)
SERIES = [Series({"a": "1"}, ((0, 1.0), (5, 2.0)))]


def texts(placed: Any) -> list[str]:
    """All that is written on a panel."""
    return [s.text for s in placed.canvas.shapes if isinstance(s, Text)]


def test_panels_lie_as_the_grid_says(panel: Any, dashboard: Any, told: Any) -> None:
    """The right half begins at 12 of 24 columns, a lower row below the upper."""
    left = panel("timeseries", ["good"], id=1)
    right = panel("timeseries", ["good"], id=2, gridPos={"x": 12, "y": 0, "w": 12, "h": 8})
    below = panel("timeseries", ["good"], id=3, gridPos={"x": 0, "y": 8, "w": 24, "h": 8})
    page = draw(dashboard(left, right, below), told({"good": SERIES}), VIEW)
    one, two, three = page.panels
    assert two.x >= one.x + one.canvas.width
    assert three.y >= one.y + one.canvas.height
    assert page.width >= three.x + three.canvas.width
    assert page.height >= three.y + three.canvas.height


def test_states_of_panels_are_told_apart(panel: Any, dashboard: Any, told: Any) -> None:
    """No data and a failed query are different things, and neither is drawn as zero."""
    panels = [
        panel("timeseries", [expr], id=i, title=expr) for i, expr in enumerate(["good", "empty", "broken"])
    ]
    page = draw(dashboard(*panels), told({"good": SERIES, "broken": ["error"]}), VIEW)
    assert [p.state for p in page.panels] == ["data", "empty", "error"]
    assert "no data" in texts(page.panels[1])
    assert any("query failed" in t for t in texts(page.panels[2]))


def test_one_failed_query_of_two_is_not_hidden(panel: Any, dashboard: Any, told: Any) -> None:
    """The good one is drawn, and the panel says that one is missing."""
    page = draw(
        dashboard(panel("timeseries", ["good", "broken"])), told({"good": SERIES, "broken": ["error"]}), VIEW
    )
    assert page.panels[0].state == "error"
    assert "a query failed" in texts(page.panels[0])


def test_picked_values_reach_the_query(panel: Any, dashboard: Any, told: Any) -> None:
    """service=llm in the page is service=llm in Prometheus."""
    prometheus = told({"x": SERIES})
    draw(dashboard(panel("timeseries", ['x{service=~"$service"}'])), prometheus, VIEW, {"service": ["llm"]})
    assert prometheus.asked == ['x{service=~"llm"}']


def test_one_panel_alone_asks_only_its_own_queries(panel: Any, dashboard: Any, told: Any) -> None:
    """For a notification; a panel that is not there is told with those that are."""
    board = dashboard(panel("timeseries", ["good"], id=1), panel("timeseries", ["other"], id=2))
    prometheus = told({"good": SERIES, "other": SERIES})
    placed = draw_panel(board, 2, prometheus, VIEW)
    assert (placed.id, placed.state, prometheus.asked) == (2, "data", ["other"])
    with pytest.raises(ValueError, match="no panel 7; it has 1, 2"):
        draw_panel(board, 7, prometheus, VIEW)


def test_an_annotation_marks_where_it_begins(panel: Any, dashboard: Any, told: Any) -> None:
    """Firing from 20 to 30 and again at 60: two marks."""
    alerts = {"name": "Alerts", "expr": "ALERTS", "iconColor": "#D55E00"}
    firing = [Series({"alertname": "X"}, ((20, 1.0), (25, 1.0), (30, 1.0), (60, 1.0)))]
    page = draw(
        dashboard(panel("timeseries", ["good"]), annotations=[alerts]),
        told({"good": SERIES, "ALERTS": firing}),
        VIEW,
    )
    marks = [s for s in page.panels[0].canvas.shapes if isinstance(s, Line) and s.hint == "Alerts"]
    assert len(marks) == 2


def test_a_prometheus_that_is_gone_is_an_error(panel: Any, dashboard: Any, told: Any) -> None:
    """A page of "no data" would look like a quiet night."""
    alerts = {"name": "Alerts", "expr": "ALERTS", "iconColor": "#D55E00"}
    with pytest.raises(PromError):
        draw(dashboard(panel("stat", ["x"]), annotations=[alerts]), told({"ALERTS": ["error"]}), VIEW)
