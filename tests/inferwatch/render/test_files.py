"""Pages and pictures are written where asked, with what has no data told."""

from pathlib import Path
from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.files import write_pages
from inferwatch.render.variables import window

VIEW = window(0, 100, 5)


def test_both_files_are_written_and_panels_counted(
    panel: Any, dashboard: Any, told: Any, tmp_path: Path
) -> None:
    """One panel with data, one without."""
    board = dashboard(
        panel("timeseries", ["good"], id=1, title="Good"),
        panel("stat", ["none"], id=2, title="Nothing", gridPos={"x": 12, "y": 0, "w": 12, "h": 8}),
    )
    prometheus = told({"good": [Series({"a": "1"}, ((0, 1.0), (5, 2.0)))]})
    (drawn,) = write_pages([board], prometheus, VIEW, tmp_path / "out")
    assert [p.name for p in drawn.paths] == ["d.html", "d.png"]
    assert all(p.stat().st_size > 1000 for p in drawn.paths)
    assert (drawn.with_data, drawn.empty, drawn.failed) == (1, ("Nothing",), ())


def test_a_variable_of_one_dashboard_does_not_stop_another(
    panel: Any, dashboard: Any, told: Any, tmp_path: Path
) -> None:
    """--all with a service: dashboards without that variable are drawn whole."""
    prometheus = told({})
    board = dashboard(panel("stat", ["x"]))
    write_pages(
        [board], prometheus, VIEW, tmp_path, formats=["html"], selection={"gpu": ["0"], "service": ["a"]}
    )
    assert (tmp_path / "d.html").exists()
