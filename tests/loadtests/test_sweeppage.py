"""What the page and the table of a sweep show, and which points are on its fronts."""

import re
from pathlib import Path
from xml.etree import ElementTree

from loadtests import sweeppage
from loadtests.compare import Figure
from loadtests.sweep import SweepPoint, scored
from loadtests.sweepplan import Scores
from loadtests.verdict import GateExit

from .sweeppoints import a_point


def _charts(html: str) -> dict[str, ElementTree.Element]:
    """Each chart by its title; raises when one is not well-formed."""
    svgs = [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html)]
    return {str(svg.findall(".//{*}text")[0].text): svg for svg in svgs}


def _texts(svg: ElementTree.Element) -> list[str]:
    return [text.text or "" for text in svg.findall(".//{*}text")]


def _hints(svg: ElementTree.Element) -> list[str]:
    return [title.text or "" for title in svg.findall(".//{*}title")]


def _lines(svg: ElementTree.Element, colour: str) -> list[list[tuple[float, float]]]:
    """Pixels of every line of a colour."""
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.attrib["points"].split())]
        for line in svg.findall(".//{*}polyline")
        if line.attrib["stroke"] == colour
    ]


def test_page_and_table_show_promise_and_front(tmp_path: Path) -> None:
    """The slower point with less throughput is on no front; the unmeasured one is a dash, not 0."""
    points = [
        a_point({"rate": 1}, tmp_path, GateExit.PASSED, 0.1, 10.0),
        a_point({"rate": 2}, tmp_path, GateExit.PASSED, 0.2, 20.0),
        a_point({"rate": 3}, tmp_path, GateExit.FAILED, 0.3, 15.0),
        a_point({"rate": 4}, tmp_path, GateExit.FAILED, None, 0.0),
    ]
    text, html = sweeppage.markdown(points, "Sweep"), sweeppage.html(points, "Sweep")
    rows = [line for line in text.splitlines() if "| rate=" in line]

    assert [row.rstrip(" |").endswith("F") for row in rows] == [True, True, False, False]
    assert "○ failed" in rows[2]
    assert "| – |" in rows[3]
    assert {line.count("|") for line in text.splitlines() if line.startswith("|")} == {9}
    assert html.count("<th>") == 9 + 4
    assert html.count("<svg") == 2
    assert [
        name for name in _texts(_charts(html)["Time to first token against throughput"]) if name in "1234"
    ] == ["1", "2", "3"]


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
    rows = [line for line in text.splitlines() if "| rate=" in line]

    assert [p.settings["rate"] for p in sweeppage.pareto(points, sweeppage.VIEWS[0])] == [1, 5]
    assert ["| F |" in row for row in rows] == [True, False, False, False, True]
    assert [row.endswith("| – |") for row in rows] == [False, True, True, True, False]
    reasons = [line for line in text.splitlines() if line.startswith("- ")]
    assert [reason.split(":")[0] for reason in reasons] == [
        "- 2, rate=2",
        "- 3, rate=3",
        "- 4, rate=4",
        "- 5, rate=5",
    ]
    assert "not compared: too many errors; failed for a reason" in reasons[0]
    assert "not compared: client saturated; client_saturated for a reason" in reasons[1]
    assert "not compared" not in reasons[3]
    assert html.count("not compared: too many errors") == 3  # the table, and the hint in each of two charts
    assert html.count("client_saturated for a reason") == 1


BLUE, ORANGE = "#56B4E9", "#E69F00"


def _of_quality(tmp_path: Path) -> list[SweepPoint]:
    """Two precisions, three lengths; right of 100 questions with Wilson's intervals (tabled for 50 and 90 of 100)."""
    half, most = Figure(0.5, 0.4038, 0.5962), Figure(0.9, 0.8256, 0.9448)
    return [
        a_point(
            {"engine.dtype": dtype, "prompt_tokens": length},
            tmp_path,
            ttft=0.1 * length / 256,
            quality=quality,
        )
        for dtype, values in (("fp16", (half, most, most)), ("fp8", (half, half, most)))
        for length, quality in zip((256, 512, 1024), values, strict=True)
    ]


def test_quality_is_drawn_against_length_and_precision(tmp_path: Path) -> None:
    """Numbers as one line a precision from left to right, names as points beside each other; whiskers from low to high."""
    charts = _charts(sweeppage.html(_of_quality(tmp_path), "Sweep"))
    length, precision = charts["Quality against prompt_tokens"], charts["Quality against dtype"]
    (curve,) = [line for line in _lines(length, BLUE) if len(line) == 3]

    assert "Quality against latency" in charts
    assert "share of right answers" in _texts(length)
    assert {"dtype=fp16", "dtype=fp8"} <= set(_texts(length))
    assert [x for x, _ in curve] == sorted({x for x, _ in curve})
    assert curve[0][1] > curve[1][1] == curve[2][1]  # pixels go down: 0.5, then 0.9 twice
    upright = [line for line in _lines(length, BLUE) if len(line) == 2 and line[0][0] == line[1][0]]
    assert len(upright) == 3
    assert all(low[1] > y > high[1] for (low, high), (_, y) in zip(upright, curve, strict=True))
    assert {"fp16", "fp8"} <= set(_texts(precision))
    assert not [line for colour in (BLUE, ORANGE) for line in _lines(precision, colour) if len(line) == 3]
    assert "dtype=fp8 prompt_tokens=512: 0.5 [0.4038, 0.5962]" in _hints(precision)


def test_a_point_that_failed_too_often_is_crossed_out_beside_its_quality(tmp_path: Path) -> None:
    """Its share of right answers counts failures as wrong: shown, and told apart. Unknown is no point at 0."""
    points = [
        a_point({"prompt_tokens": 1}, tmp_path, quality=Figure(0.9)),
        a_point({"prompt_tokens": 2}, tmp_path, GateExit.FAILED, many_errors=True, quality=Figure(0.1)),
        a_point({"prompt_tokens": 3}, tmp_path, quality=None),
    ]
    chart = _charts(sweeppage.html(points, "Sweep"))["Quality against prompt_tokens"]

    assert len(_lines(chart, "var(--error)")) == 2
    assert len([line for line in _lines(chart, BLUE) if len(line) == 2]) == 1
    assert len(_hints(chart)) == 2


def test_an_axis_with_one_value_and_the_load_have_no_quality_chart(tmp_path: Path) -> None:
    """Quality along the rate is no question of a quality sweep; without any quality there is no such chart."""
    points = [a_point({"rate": rate, "n": 1}, tmp_path, quality=Figure(0.5)) for rate in (1, 2)]

    assert [title for title in _charts(sweeppage.html(points, "S")) if "Quality" in title] == [
        "Quality against latency"
    ]
    assert len(_charts(sweeppage.html([a_point({"n": n}, tmp_path) for n in (1, 2)], "S"))) == 2


def test_scores_of_the_users_own(tmp_path: Path) -> None:
    """Perplexity is the better the lower: the front is of the fast one and of the good one, and a gap stays unknown."""
    rows = [
        {"engine.dtype": "fp16", "score": 5.5},
        {"engine.dtype": "fp8", "score": 6},
        {"engine.dtype": "int4", "score": 9.25},
    ]
    scores = Scores.model_validate({"name": "perplexity", "better": "lower", "values": rows})
    points = [
        a_point({"engine.dtype": dtype, "rate": 1}, tmp_path, ttft=ttft)
        for dtype, ttft in (("fp16", 0.3), ("fp8", 0.2), ("int4", 0.25), ("int2", 0.1))
    ]
    points = scored(points, scores)
    text, html = sweeppage.markdown(points, "S", scores), sweeppage.html(points, "S", scores)
    view = sweeppage.views(points, scores)[-1]
    chart = _charts(html)["Quality against dtype"]

    assert [one.settings["engine.dtype"] for one in sweeppage.pareto(points, view)] == ["fp8", "fp16"]
    assert "| 5.5 |" in text and "| 6 |" in text
    assert next(line for line in text.splitlines() if "int2" in line).count("| – |") == 1
    assert "perplexity" in _texts(chart)
    assert "int2" not in _texts(chart)
    assert scored(points, None) == points


def test_scores_below_zero_are_inside_the_chart(tmp_path: Path) -> None:
    """A mean log-likelihood of -2 and -1.5."""
    points = [a_point({"n": n}, tmp_path, quality=Figure(value)) for n, value in ((1, -2.0), (2, -1.5))]
    (line,) = _lines(_charts(sweeppage.html(points, "S"))["Quality against n"], BLUE)

    assert all(34 <= y <= 276 for _, y in line)
    assert line[0][1] > line[1][1]
