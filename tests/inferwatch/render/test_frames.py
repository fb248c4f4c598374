"""Tables: Grafana's transformations, applied as Grafana applies them."""

import math
from typing import Any

import pytest

from inferwatch.promapi import Sample
from inferwatch.render.fetch import Answer
from inferwatch.render.frames import TransformError, tabulate


def answer(*cells: tuple[str, str, float], ref: str = "A") -> Answer:
    """Samples with labels row and col."""
    samples = tuple(Sample({"row": r, "col": c}, 0.0, v) for r, c, v in cells)
    return Answer(ref, "__auto", "table", samples=samples, instant=True)


def numbers(*names: str) -> dict[str, Any]:
    """convertFieldType for label columns."""
    return {
        "id": "convertFieldType",
        "options": {"conversions": [{"targetField": n, "destinationType": "number"} for n in names]},
    }


def by(name: str, desc: bool = False) -> dict[str, Any]:
    """sortBy one column."""
    return {"id": "sortBy", "options": {"sort": [{"field": name, "desc": desc}]}}


MATRIX = {
    "id": "groupingToMatrix",
    "options": {"rowField": "row", "columnField": "col", "valueField": "Value", "emptyValue": "null"},
}


def test_a_matrix_has_rows_and_columns_in_numeric_order() -> None:
    """10 comes after 2; rows rise upwards; a cell nobody gave is None."""
    given = answer(("10", "2", 1.0), ("2", "10", 2.0), ("2", "2", 3.0))
    table = tabulate([given], [numbers("row", "col"), by("col"), by("row", desc=True), MATRIX])
    assert table.columns == ("row\\col", "2", "10")
    assert table.rows == (("10", 1.0, None), ("2", 3.0, 2.0))


def test_organize_hides_orders_and_renames() -> None:
    """What is not named keeps its place after what is."""
    given = answer(("a", "b", 1.0))
    options = {
        "excludeByName": {"Time": True, "Value": True},
        "indexByName": {"row": 0, "col": 1},
        "renameByName": {"row": "Row"},
    }
    table = tabulate([given], [{"id": "organize", "options": options}])
    assert (table.columns, table.rows) == (("Row", "col"), (("a", "b"),))


def test_answers_with_equal_labels_become_one_row() -> None:
    """Two queries: a value column each, joined by the labels."""
    table = tabulate(
        [answer(("a", "b", 1.0)), answer(("a", "b", 2.0), ref="B")], [{"id": "merge", "options": {}}]
    )
    assert len(table.rows) == 1
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert (row["Value #A"], row["Value #B"]) == (1.0, 2.0)


def test_unknown_sorts_last() -> None:
    """NaN is neither the least nor the greatest."""
    table = tabulate([answer(("a", "x", math.nan), ("b", "x", 1.0))], [by("Value")])
    assert [row[table.column("row")] for row in table.rows] == ["b", "a"]


def test_an_unknown_transformation_is_an_error() -> None:
    """A table without it would show something else than Grafana."""
    with pytest.raises(TransformError, match="'reduce'"):
        tabulate([answer(("a", "b", 1.0))], [{"id": "reduce", "options": {}}])


def test_a_missing_column_names_those_there_are() -> None:
    """The error helps to find the misspelling."""
    with pytest.raises(TransformError, match="no column 'rwo'; there are Time, col, row, Value"):
        tabulate([answer(("a", "b", 1.0))], [by("rwo")])
