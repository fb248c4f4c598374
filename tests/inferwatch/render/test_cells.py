"""Histograms as heatmaps: buckets in numeric order, each with its own count."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from inferwatch.promapi import Series
from inferwatch.render import theme
from inferwatch.render.canvas import Canvas, Cells, Text
from inferwatch.render.cells import BucketError, buckets, draw
from inferwatch.render.fetch import Answer
from inferwatch.render.variables import window

CASE = Path(__file__).parents[2] / "fixtures" / "dashboards" / "A47"


def case(name: str) -> Any:
    """A file of the case."""
    return json.loads((CASE / name).read_text(encoding="utf-8"))


def test_buckets_are_ordered_as_numbers_and_not_cumulative() -> None:
    """The case: 0.25, +Inf, 10.0, 2.5, 5e-05, 100.0 as returned become bottom to top, cells 0, 40, 30, 20, 5, 5."""
    result, expected = case("result.json"), case("expected.json")
    series = [Series({"le": le}, ((0.0, float(result["cumulative"][le])),)) for le in result["labels"]]
    found = buckets(series)
    assert found.bounds == tuple(float(le) for le in expected["order"])
    assert [counts[0.0] for counts in found.counts] == expected["cells"]


def test_a_sum_that_dips_by_a_hair_is_no_negative_count() -> None:
    """Two scrapes apart, a higher bucket can be a little lower."""
    found = buckets([Series({"le": "1"}, ((0.0, 5.0),)), Series({"le": "+Inf"}, ((0.0, 4.9),))])
    assert [counts[0.0] for counts in found.counts] == [5.0, 0.0]


def test_labels_beside_le_are_refused() -> None:
    """Buckets of two instances on top of each other would look like one."""
    two = [Series({"le": "1", "i": "a"}, ()), Series({"le": "1", "i": "b"}, ())]
    with pytest.raises(BucketError, match="two series have le='1'"):
        buckets(two)


def test_a_series_without_le_is_refused() -> None:
    """A gauge is no histogram."""
    with pytest.raises(BucketError, match="needs series by le"):
        buckets([Series({"i": "a"}, ())])


def drawn(panel: Any, answer: Answer) -> Canvas:
    """The panel on a canvas, over ten seconds in steps of five."""
    canvas = Canvas(600, 240)
    draw(canvas, panel, [answer], window(0, 10, 5), [])
    return canvas


def test_the_fullest_cell_is_brightest_and_an_empty_one_is_left_out(panel: Any) -> None:
    """Bucket 1–2 s holds 9 at 5 s, bucket 0–1 s holds 1 at 0 s; times without a sample are empty."""
    series = (
        Series({"le": "1"}, ((0.0, 1.0), (5.0, 0.0))),
        Series({"le": "2"}, ((0.0, 1.0), (5.0, 9.0))),
        Series({"le": "+Inf"}, ((0.0, 1.0), (5.0, 9.0))),
    )
    canvas = drawn(panel("heatmap", ["x"]), Answer("A", "{{le}}", "heatmap", series))
    (cells,) = [s for s in canvas.shapes if isinstance(s, Cells)]
    assert len(cells.rows) == 3
    top, middle, bottom = cells.rows
    assert top == ("", "", "")
    assert middle == ("", theme.scale("Viridis", 1.0), "")
    # 1 of 9 with the exponent 0.5 is a third of the way, over the 8 % that keep a single one visible.
    assert bottom == (theme.scale("Viridis", 0.08 + 0.92 / 3), "", "")


def test_an_idle_histogram_says_so(panel: Any) -> None:
    """All zero is neither an empty answer nor a picture."""
    idle = (Series({"le": "1"}, ((0.0, 0.0),)), Series({"le": "+Inf"}, ((0.0, 0.0),)))
    canvas = drawn(panel("heatmap", ["x"]), Answer("A", "{{le}}", "heatmap", idle))
    assert [s.text for s in canvas.shapes if isinstance(s, Text)] == ["no observations"]


def test_a_row_a_series_keeps_values_as_they_are(panel: Any) -> None:
    """GPU × time: nothing is taken apart, a missing sample is no zero."""
    series = (
        Series({"gpu": "0"}, ((0.0, 0.0), (5.0, 1.0))),
        Series({"gpu": "1"}, ((0.0, 0.5), (5.0, math.nan), (10.0, 0.5))),
    )
    one = panel("heatmap", ["x"])
    one["options"]["color"] |= {"max": 1, "exponent": 1}
    canvas = drawn(one, Answer("A", "{{gpu}}", "time_series", series))
    (cells,) = [s for s in canvas.shapes if isinstance(s, Cells)]
    upper, lower = cells.rows
    half = theme.scale("Viridis", 0.08 + 0.92 * 0.5)
    assert upper == (half, "", half)
    assert lower == (theme.scale("Viridis", 0.08), theme.scale("Viridis", 1.0), "")


def test_diverging_colours_are_turned_as_grafana_turns_them(panel: Any) -> None:
    """In Grafana's heatmaps RdYlGn is green for little and red for much, and reversed the other way round."""
    series = (Series({"gpu": "0"}, ((0.0, 1.0),)),)
    one = panel("heatmap", ["x"])
    one["options"]["color"] |= {"max": 1, "exponent": 1, "scheme": "RdYlGn"}
    answer = Answer("A", "{{gpu}}", "time_series", series)
    much = next(s for s in drawn(one, answer).shapes if isinstance(s, Cells)).rows[0][0]
    one["options"]["color"]["reverse"] = True
    found = next(s for s in drawn(one, answer).shapes if isinstance(s, Cells)).rows[0][0]

    assert (much, found) == ("#d73027", "#1a9850")


def test_what_the_bounds_count_stands_above_them(panel: Any) -> None:
    """A histogram of tokens: its bounds are plain numbers, and the label leaves the cells below it."""
    one = panel("heatmap", ["x"])
    tops = []
    for label in ("", "tokens"):
        one["options"]["yAxis"] = {"unit": "short", "axisLabel": label}
        canvas = Canvas(600, 300)
        draw(
            canvas,
            one,
            [Answer("A", "{{le}}", "heatmap", [Series({"le": "1"}, ((0.0, 5.0),))])],
            window(0, 100, 5),
            [],
        )
        tops += [shape.y for shape in canvas.shapes if isinstance(shape, Cells)]
        found = [shape.y for shape in canvas.shapes if isinstance(shape, Text) and shape.text == "tokens"]
    assert len(found) == 1 and tops[0] < found[0] < tops[1]
