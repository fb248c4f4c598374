"""The table for people names what was missed and what is not as it ships."""

import io

from rich.console import Console

from inferwatch.scenarios.main import result
from inferwatch.scenarios.report import show
from inferwatch.scenarios.verdict import Delivery, Verdict

GOOD = Verdict(
    "down",
    "fleet",
    "Sim down",
    (Delivery("EngineDown", {}, 10.0, 20.0, 25.0, 30.0, ""),),
    (),
    (),
    (1.0, 2.0),
    60.0,
)
BAD = Verdict(
    "hang",
    "fleet",
    "Sim hang",
    (Delivery("EngineHung", {}, None, 31.0, 38.8, None, "", "held 1 min in place of 30 min"),),
    ("CanaryFailing",),
    ("EngineHung was not delivered (firing)",),
    (3.0, 9.0),
    90.0,
)


def test_figures_are_of_what_was_delivered() -> None:
    """10 s of 20 s is half of theory; what never came has no delay, and fails the run."""
    found = result(([GOOD, BAD], {"fleet": []}), 100.0)

    assert found["passed"] is False
    assert found["delay_seconds"] == {"median": 10.0, "worst": 10.0}
    assert found["delay_over_theory"] == {"median": 0.5, "worst": 0.5}
    assert found["load_average"] == {"worst": 9.0}
    assert [row["passed"] for row in found["rows"]] == [True, False]


def test_a_page_of_nobody_fails_the_run() -> None:
    """All rows may be as expected, and yet somebody was woken."""
    assert result(([GOOD], {"fleet": []}), 1.0)["passed"] is True
    found = result(([GOOD], {"fleet": ["ExporterDown came and belongs to no row: x"]}), 1.0)
    assert found["passed"] is False


def test_the_table_says_all_of_it() -> None:
    """Row, delay, miss, a hold that is shorter than it ships, and figures stand in the text."""
    console = Console(width=200, record=True, file=io.StringIO())
    show(result(([GOOD, BAD], {"fleet": []}), 100.0), console)
    text = console.export_text()

    assert "not as expected: hang: EngineHung was not delivered (firing)" in text
    assert "never" in text
    assert "hang: EngineHung is held 1 min in place of 30 min" in text
    assert "CanaryFailing" in text
    assert "1 of 2 rows as expected" in text
    assert "median 10 s, worst 10 s; over theory: median 0.5, worst 0.5" in text
