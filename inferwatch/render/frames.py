"""Answers of table queries -> rows and columns, after the transformations Grafana would apply."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferwatch.render.fetch import Answer

Json = Mapping[str, Any]
Cell = str | float | None


@dataclass(frozen=True)
class Table:
    """Column names and rows; a cell without a value is None."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def column(self, name: str) -> int:
        """Index of a column.

        Raises TransformError when there is none of that name.
        """
        if name not in self.columns:
            raise TransformError(f"there is no column {name!r}; there are {', '.join(self.columns)}")
        return self.columns.index(name)


class TransformError(ValueError):
    """A transformation cannot be done; the text says which and why."""


def tabulate(given: Sequence[Answer], transformations: Sequence[Json]) -> Table:
    """One table for all answers: Time, the labels, and a value for each query.

    Raises TransformError for a transformation that is unknown or names a missing column.
    """
    tables = [_frame(answer, several=len(given) > 1) for answer in given]
    table = _merge(tables) if len(tables) > 1 else tables[0]
    for one in transformations:
        if one["id"] not in _TRANSFORMATIONS:
            raise TransformError(
                f"the renderer does not know the transformation {one['id']!r}; add it to frames.py"
            )
        table = _TRANSFORMATIONS[one["id"]](table, one["options"])
    return table


def _frame(answer: Answer, several: bool) -> Table:
    labels = sorted({name for s in answer.samples for name in s.labels})
    value = f"Value #{answer.ref_id}" if several else "Value"
    rows: list[tuple[Cell, ...]] = [
        (s.timestamp, *(s.labels.get(name) for name in labels), s.value) for s in answer.samples
    ]
    return Table(("Time", *labels, value), tuple(rows))


def _merge(tables: Sequence[Table]) -> Table:
    """Rows that agree in every shared column become one, as Grafana's merge does."""
    columns = tuple(dict.fromkeys(name for t in tables for name in t.columns))
    labels = [c for c in columns if c != "Time" and not c.startswith("Value #")]
    merged: dict[tuple[Cell, ...], dict[str, Cell]] = {}
    for table in tables:
        for row in table.rows:
            cells = dict(zip(table.columns, row, strict=True))
            merged.setdefault(tuple(cells.get(name) for name in labels), {}).update(cells)
    return Table(columns, tuple(tuple(cells.get(c) for c in columns) for cells in merged.values()))


def _keep(table: Table, options: Json) -> Table:
    """`merge`: the frames are one table already."""
    del options
    return table


def _organize(table: Table, options: Json) -> Table:
    hidden, order = options.get("excludeByName", {}), options.get("indexByName", {})
    kept = [c for c in table.columns if not hidden.get(c)]
    kept.sort(key=lambda c: order.get(c, len(order) + table.columns.index(c)))
    places = [table.columns.index(c) for c in kept]
    names = tuple(options.get("renameByName", {}).get(c, c) for c in kept)
    return Table(names, tuple(tuple(row[p] for p in places) for row in table.rows))


def _sort_by(table: Table, options: Json) -> Table:
    (rule,) = options["sort"]
    place = table.column(rule["field"])
    rows = sorted(table.rows, key=lambda row: _order(row[place]), reverse=bool(rule.get("desc")))
    return Table(table.columns, tuple(rows))


def _order(cell: Cell) -> tuple[int, float, str]:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return (2, 0.0, "")
    return (0, cell, "") if isinstance(cell, float) else (1, 0.0, cell)


def _convert(table: Table, options: Json) -> Table:
    numbers = {
        table.column(c["targetField"]) for c in options["conversions"] if c["destinationType"] == "number"
    }
    rows = tuple(
        tuple(float(c) if i in numbers and isinstance(c, str) else c for i, c in enumerate(row))
        for row in table.rows
    )
    return Table(table.columns, rows)


def _matrix(table: Table, options: Json) -> Table:
    """`groupingToMatrix`: one row a value of rowField, one column a value of columnField."""
    row_at, column_at = table.column(options["rowField"]), table.column(options["columnField"])
    value_at = table.column(options["valueField"])
    cells = {(row[row_at], row[column_at]): row[value_at] for row in table.rows}
    columns = list(dict.fromkeys(row[column_at] for row in table.rows))
    names = (f"{options['rowField']}\\{options['columnField']}", *(_plain(c) for c in columns))
    rows = dict.fromkeys(row[row_at] for row in table.rows)
    return Table(names, tuple((_plain(r), *(cells.get((r, c)) for c in columns)) for r in rows))


def _plain(cell: Cell) -> str:
    return f"{cell:g}" if isinstance(cell, float) else cell or ""


_TRANSFORMATIONS: dict[str, Callable[[Table, Json], Table]] = {
    "merge": _keep,
    "organize": _organize,
    "sortBy": _sort_by,
    "convertFieldType": _convert,
    "groupingToMatrix": _matrix,
}
