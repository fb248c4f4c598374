"""Tables as pictures: coloured cells, cut texts with the whole one at hand, rows that do not fit counted."""

from typing import Any

from inferwatch.promapi import Sample
from inferwatch.render.canvas import Canvas, Rect, Text
from inferwatch.render.fetch import Answer
from inferwatch.render.grid import draw


def table(samples: list[Sample]) -> Answer:
    """An instant answer."""
    return Answer("A", "__auto", "table", samples=tuple(samples), instant=True)


def test_a_matrix_cell_is_filled_by_its_value(panel: Any) -> None:
    """Red at 0, green at 1; a cell nobody gave is a dash without a colour."""
    defaults = {
        "unit": "percentunit", "decimals": 0, "min": 0, "max": 1, "noValue": "–",
        "color": {"mode": "continuous-RdYlGr"}, "custom": {"cellOptions": {"type": "color-background"}},
    }  # fmt: skip
    matrix = {
        "id": "groupingToMatrix",
        "options": {"rowField": "row", "columnField": "col", "valueField": "Value"},
    }
    one = panel("table", ["x"], defaults=defaults, transformations=[matrix])
    canvas = Canvas(500, 200)
    samples = [Sample({"row": "1", "col": "a"}, 0.0, 0.0), Sample({"row": "1", "col": "b"}, 0.0, 1.0),
               Sample({"row": "2", "col": "a"}, 0.0, 1.0)]  # fmt: skip
    draw(canvas, one, [table(samples)])
    assert sorted(s.fill for s in canvas.shapes if isinstance(s, Rect)) == ["#1a9850", "#1a9850", "#d73027"]
    texts = [s.text for s in canvas.shapes if isinstance(s, Text)]
    assert texts.count("100 %") == 2
    assert texts.count("–") == 1


def test_rows_that_do_not_fit_are_counted(panel: Any) -> None:
    """Fifty rows in a small panel: what is missing is said."""
    canvas = Canvas(400, 150)
    draw(canvas, panel("table", ["x"]), [table([Sample({"n": f"{i:02}"}, 0.0, 1.0) for i in range(50)])])
    # (150 − 30 − 22 − 10) / 22 rows fit: four, of which one line is the count.
    assert "+47 more rows" in [s.text for s in canvas.shapes if isinstance(s, Text)]


def test_a_long_text_is_cut_and_whole_in_its_hint(panel: Any) -> None:
    """Nothing runs into the next column."""
    canvas = Canvas(300, 150)
    name = "an-instance-name-that-is-much-longer-than-its-column.example.internal:8000"
    draw(canvas, panel("table", ["x"]), [table([Sample({"instance": name}, 0.0, 1.0)])])
    (cut,) = [s for s in canvas.shapes if isinstance(s, Text) and s.hint]
    assert cut.text.endswith("…")
    assert cut.hint == name
