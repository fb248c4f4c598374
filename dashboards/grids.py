"""Panels of cells: histograms over time, a row a series, tables, and matrices over two axes that are not time."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.steps import PLAIN, Steps, axis_label, describe, lettered, thresholds
from dashboards.style import Json, ModernPanel, Query


def heatmap(
    title: str, says: str, source: str, expr: str, unit: str = "s", *, width: int = 12, scheme: str = "Viridis",
    exemplar: bool = True, decimals: int | None = None, unit_words: str = "",
) -> ModernPanel:  # fmt: skip
    """A histogram over time: *expr* is `sum by (le)` of an increase; cells are observations per bucket."""
    axis: Json = {"axisPlacement": "left", "reverse": False, "unit": unit, **axis_label(unit, unit_words)}
    if decimals is not None:
        axis["decimals"] = decimals
    reading = f"{says} Read it as: brighter cells hold more observations; up is slower or larger."
    one = Query(expr=expr, format="heatmap", legendFormat="{{le}}", exemplar=exemplar)
    return ModernPanel(
        kind="heatmap", title=title, description=describe(reading, unit, source, unit_words), width=width,
        targets=lettered([one]),
        field_config={
            "defaults": {"custom": {"hideFrom": {"legend": False, "tooltip": False, "viz": False},
                                    "scaleDistribution": {"type": "linear"}}},
            "overrides": [],
        },
        options={
            "calculate": False, "cellGap": 1, "cellValues": {"unit": "short"},
            "color": {"exponent": 0.5, "fill": "dark-orange", "mode": "scheme", "reverse": False,
                      "scale": "exponential", "scheme": scheme, "steps": 64},
            "exemplars": {"color": "rgba(255,255,255,0.8)"}, "filterValues": {"le": 1e-9},
            "legend": {"show": True}, "rowsFrame": {"layout": "auto"}, "showValue": "never",
            "tooltip": {"mode": "single", "showColorScale": True, "yHistogram": True}, "yAxis": axis,
        },
    )  # fmt: skip


def rows_heatmap(
    title: str, says: str, source: str, expr: str, legend: str, unit: str = "percentunit", *, width: int = 12,
    scheme: str = "Viridis", maximum: float = 1, unit_words: str = "", reverse: bool = False,
    reads: str = "brighter is more",
) -> ModernPanel:  # fmt: skip
    """One row a series, cells coloured by its value: for comparing many things of one kind over time."""
    panel = heatmap(title, says, source, expr, unit, width=width, scheme=scheme, exemplar=False)
    reading = f"{says} Read it as: a row is one of them, {reads}."
    panel.description = describe(reading, unit, source, unit_words)
    panel.targets = lettered([Query(expr=expr, legendFormat=legend)])
    panel.options["color"] |= {"min": 0, "max": maximum, "exponent": 1, "scale": "linear", "reverse": reverse}
    panel.options["cellValues"] = {"unit": unit}
    panel.options["yAxis"] = {"axisPlacement": "left", "reverse": False}
    del panel.options["filterValues"]
    return panel


def table(
    title: str, says: str, source: str, queries: Sequence[Query], *, width: int = 12, unit: str = "none",
    transformations: Sequence[Json] = (), overrides: Sequence[Json] = (), mappings: Sequence[Json] = (),
    steps: Steps = PLAIN, cell: Mapping[str, Any] | None = None, unit_words: str = "", colour: str = "thresholds",
    minimum: float | None = None, maximum: float | None = None, decimals: int | None = None,
) -> ModernPanel:  # fmt: skip
    """Rows and columns after *transformations*; *cell* is Grafana's cell option (coloured background, …)."""
    custom = {"align": "auto", "cellOptions": dict(cell or {"type": "auto"}), "inspect": False}
    defaults: Json = {
        "color": {"mode": colour}, "custom": custom, "mappings": list(mappings), "noValue": "–",
        "thresholds": thresholds(steps), "unit": unit,
    }  # fmt: skip
    for key, value in (("min", minimum), ("max", maximum), ("decimals", decimals)):
        if value is not None:
            defaults[key] = value
    return ModernPanel(
        kind="table", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=lettered(queries), transformations=list(transformations),
        field_config={"defaults": defaults, "overrides": list(overrides)},
        options={"cellHeight": "sm", "frameIndex": 0, "showHeader": True, "sortBy": []},
    )  # fmt: skip


def matrix(
    title: str, says: str, source: str, expr: str, *, row: str, column: str, width: int = 12,
    unit: str = "percentunit", colour: str = "continuous-RdYlGr", minimum: float = 0, maximum: float = 1,
    mappings: Sequence[Json] = (), decimals: int | None = 0, unit_words: str = "", numeric: bool = True,
) -> ModernPanel:  # fmt: skip
    """Coloured cells over two axes that are not time: *expr* gives one sample a cell, by labels *row*, *column*.

    *numeric*: both labels are numbers (lower bounds of bins), else texts that sort as they should stand. The two sorts put the columns, then the rows, in their order:
    to the right and upwards is more.
    """
    unknown = {
        "type": "special",
        "options": {"match": "nan", "result": {"text": "–", "color": "transparent"}},
    }
    to_numbers = {
        "id": "convertFieldType",
        "options": {
            "conversions": [{"targetField": name, "destinationType": "number"} for name in (row, column)],
            "fields": {},
        },
    }
    return table(
        title, says, source, [Query(expr=expr, instant=True, format="table", legendFormat="__auto")],
        width=width, unit=unit, colour=colour, minimum=minimum, maximum=maximum, decimals=decimals,
        cell={"type": "color-background", "mode": "basic"}, mappings=[*mappings, unknown], unit_words=unit_words,
        transformations=[
            *([to_numbers] if numeric else []),
            {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": column}]}},
            {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": row, "desc": True}]}},
            {"id": "groupingToMatrix", "options": {
                "columnField": column, "rowField": row, "valueField": "Value", "emptyValue": "null"}},
        ],
        overrides=[{
            "matcher": {"id": "byName", "options": f"{row}\\{column}"},
            "properties": [
                {"id": "custom.cellOptions", "value": {"type": "auto"}},
                {"id": "unit", "value": "none"},
                {"id": "mappings", "value": []},
                {"id": "displayName", "value": f"{row} \\ {column}"},
            ],
        }],
    )  # fmt: skip
