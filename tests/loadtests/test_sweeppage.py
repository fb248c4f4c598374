"""What the page and the table of a sweep show, and which points are on its fronts."""

from pathlib import Path

from loadtests import sweeppage
from loadtests.gates import GateExit

from .sweeppoints import a_point


def test_page_and_table_show_promise_and_front(tmp_path: Path) -> None:
    """The slower point with less throughput is on no front; the unmeasured one is a dash, not 0."""
    points = [
        a_point({"rate": 1}, tmp_path, GateExit.PASSED, 0.1, 10.0),
        a_point({"rate": 2}, tmp_path, GateExit.PASSED, 0.2, 20.0),
        a_point({"rate": 3}, tmp_path, GateExit.FAILED, 0.3, 15.0),
        a_point({"rate": 4}, tmp_path, GateExit.FAILED, None, 0.0),
    ]
    text, html = sweeppage.markdown(points, "Sweep"), sweeppage.html(points, "Sweep")
    rows = [line for line in text.splitlines() if line.startswith("| rate")]

    assert [row.rstrip(" |").endswith("F") for row in rows] == [True, True, False, False]
    assert "○ failed" in rows[2]
    assert "| – |" in rows[3]
    assert html.count("<svg") == 2


def test_points_that_tell_nothing_push_no_other_off_the_front(tmp_path: Path) -> None:
    """
    The fastest point failed nine of ten requests, the next measured its own client, one had too few samples.

    They are shown, with the reason; the front is of the one that passed, and of the one that is late but whole.
    """
    points = [
        a_point({"rate": 1}, tmp_path, GateExit.PASSED, 0.2, 20.0),
        a_point({"rate": 2}, tmp_path, GateExit.FAILED, 0.1, 30.0, many_errors=True),
        a_point({"rate": 3}, tmp_path, GateExit.CLIENT_SATURATED, 0.1, 40.0),
        a_point({"rate": 4}, tmp_path, GateExit.TOO_FEW_SAMPLES, 0.1, 40.0),
        a_point({"rate": 5}, tmp_path, GateExit.FAILED, 0.4, 25.0),
    ]
    text, html = sweeppage.markdown(points, "Sweep"), sweeppage.html(points, "Sweep")
    rows = [line for line in text.splitlines() if line.startswith("| rate")]

    assert [p.settings["rate"] for p in sweeppage.pareto(points, sweeppage.VIEWS[0])] == [1, 5]
    assert ["| F |" in row for row in rows] == [True, False, False, False, True]
    assert ["not compared" in row for row in rows] == [False, True, True, True, False]
    assert "too many errors" in rows[1]
    assert "client saturated" in rows[2] and "client_saturated for a reason" in rows[2]
    assert html.count("not compared: too many errors") == 3  # the table, and the hint in each of two charts
    assert html.count("client_saturated for a reason") == 1
