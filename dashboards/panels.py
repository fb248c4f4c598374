"""One function a panel type: what to show in, a modern grafanalib panel out."""

from collections.abc import Mapping, Sequence
from typing import Any

from dashboards.style import GREEN, GREY, ORANGE, RED, SERIES, Json, ModernPanel, Query

UNITS = {
    "s": "seconds",
    "percentunit": "a ratio of 0 to 1, shown in per cent",
    "reqps": "requests per second",
    "short": "a count",
    "none": "a plain number",
    "bytes": "bytes",
    "cps": "events per second",
    "watt": "watts",
    "celsius": "degrees Celsius",
    "dateTimeFromNow": "time since",
    "string": "a name",
}
"""Grafana unit -> the words that a panel's description uses."""

Steps = Sequence[tuple[float | None, str]]
PLAIN: Steps = ((None, SERIES[0]),)


def bad_above(warn: float, bad: float | None = None) -> Steps:
    """Green, orange from *warn*, red from *bad* (both in the panel's unit)."""
    return ((None, GREEN), (warn, ORANGE)) if bad is None else ((None, GREEN), (warn, ORANGE), (bad, RED))


def bad_below(bad: float, warn: float | None = None) -> Steps:
    """Red under *bad*, orange under *warn*, green from there."""
    return ((None, RED), (bad, GREEN)) if warn is None else ((None, RED), (bad, ORANGE), (warn, GREEN))


def states(names: Mapping[int, tuple[str, str]]) -> list[Json]:
    """Value mappings of a state: number -> (text, colour)."""
    options = {
        str(n): {"text": text, "color": colour, "index": i}
        for i, (n, (text, colour)) in enumerate(names.items())
    }
    return [{"type": "value", "options": options}]


def thresholds(steps: Steps) -> Json:
    """Steps as Grafana stores them; the first has no lower end, which JSON can only say with null."""
    return {"mode": "absolute", "steps": [{"value": value, "color": colour} for value, colour in steps]}


def describe(says: str, unit: str, source: str, unit_words: str = "") -> str:
    """The sentence a reader needs, then the unit and where the numbers come from."""
    return f"{says} Unit: {unit_words or UNITS[unit]}. Source: {source}."


def _lettered(queries: Sequence[Query]) -> list[Query]:
    for letter, one in zip("ABCDEFGHIJKLMNOP", queries, strict=False):
        one.refId = letter
    return list(queries)


def _fixed_colours(queries: Sequence[Query], colours: Sequence[str]) -> list[Json]:
    """A colour for each query, so that a quantile or state looks the same on every page."""
    return [
        {
            "matcher": {"id": "byFrameRefID", "options": one.refId},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for one, colour in zip(queries, colours, strict=False)
    ]


def _reduce(calc: str = "lastNotNull") -> Json:
    return {"calcs": [calc], "fields": "", "values": False}


def stat(
    title: str, says: str, source: str, queries: Sequence[Query], unit: str = "short", *, steps: Steps = PLAIN,
    width: int = 4, decimals: int | None = None, mappings: Sequence[Json] = (), spark: bool = True,
    no_value: str = "no data", unit_words: str = "", text: str = "auto", overrides: Sequence[Json] = (),
    maximum: float | None = None,
) -> ModernPanel:  # fmt: skip
    """One number (or one a series), coloured by its thresholds."""
    defaults: Json = {
        "color": {"mode": "thresholds"},
        "mappings": list(mappings),
        "noValue": no_value,
        "thresholds": thresholds(steps),
        "unit": unit,
    }
    for key, value in (("decimals", decimals), ("max", maximum)):
        if value is not None:
            defaults[key] = value
    return ModernPanel(
        kind="stat", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=_lettered(queries), field_config={"defaults": defaults, "overrides": list(overrides)},
        options={
            "colorMode": "value", "graphMode": "area" if spark else "none", "justifyMode": "auto",
            "orientation": "auto", "percentChangeColorMode": "standard", "reduceOptions": _reduce(),
            "showPercentChange": False, "textMode": text, "wideLayout": True,
        },
    )  # fmt: skip


def timeseries(
    title: str, says: str, source: str, queries: Sequence[Query], unit: str = "short", *, width: int = 12,
    limits: Steps = (), minimum: float | None = 0, maximum: float | None = None, stack: bool = False,
    colours: Sequence[str] = SERIES, many: bool = False, log: bool = False, unit_words: str = "",
    overrides: Sequence[Json] = (), decimals: int | None = None, no_value: str = "no data",
) -> ModernPanel:  # fmt: skip
    """Lines over time. *limits* are drawn as lines; *many*: one query gives many series, named by legend."""
    targets = _lettered(queries)
    custom: Json = {
        "axisPlacement": "auto", "drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 2 if not stack else 1,
        "fillOpacity": 35 if stack else 8, "gradientMode": "none", "pointSize": 4, "showPoints": "auto",
        "spanNulls": False, "stacking": {"group": "A", "mode": "normal" if stack else "none"},
        "scaleDistribution": {"type": "log", "log": 10} if log else {"type": "linear"},
        "thresholdsStyle": {"mode": "line+area" if limits else "off"},
    }  # fmt: skip
    defaults: Json = {
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "mappings": [],
        "noValue": no_value,
        "thresholds": thresholds([(None, "transparent"), *limits]),
        "unit": unit,
    }
    for key, value in (("min", minimum), ("max", maximum), ("decimals", decimals)):
        if value is not None:
            defaults[key] = value
    fixed = [] if many else _fixed_colours(targets, colours)
    return ModernPanel(
        kind="timeseries", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=targets, field_config={"defaults": defaults, "overrides": [*fixed, *overrides]},
        options={
            "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table" if width > 8 else "list",
                       "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
    )  # fmt: skip


def scatter(
    title: str, says: str, source: str, across: Query, up: Query, *, width: int = 12, unit: str = "none",
    unit_words: str = "",
) -> ModernPanel:  # fmt: skip
    """One point a moment: the value of *across* along, that of *up* upwards; each query gives one series."""
    return ModernPanel(
        kind="xychart", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=_lettered([across, up]),
        transformations=[{"id": "joinByField", "options": {"byField": "Time", "mode": "outer"}}],
        field_config={
            "defaults": {
                "color": {"mode": "fixed", "fixedColor": SERIES[0]},
                "custom": {"axisPlacement": "auto", "pointSize": {"fixed": 5}, "show": "points"},
                "mappings": [], "min": 0, "thresholds": thresholds(PLAIN), "unit": unit,
            },
            "overrides": [],
        },
        options={
            "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
            "mapping": "manual",
            "series": [{
                "frame": {"matcher": {"id": "byIndex", "options": 0}},
                "x": {"matcher": {"id": "byName", "options": across.legendFormat}},
                "y": {"matcher": {"id": "byName", "options": up.legendFormat}},
            }],
            "tooltip": {"mode": "single", "sort": "none"},
        },
    )  # fmt: skip


def heatmap(
    title: str, says: str, source: str, expr: str, unit: str = "s", *, width: int = 12, scheme: str = "Viridis",
    exemplar: bool = True, decimals: int | None = None, unit_words: str = "",
) -> ModernPanel:  # fmt: skip
    """A histogram over time: *expr* is `sum by (le)` of an increase; cells are observations per bucket."""
    axis: Json = {"axisPlacement": "left", "reverse": False, "unit": unit}
    if decimals is not None:
        axis["decimals"] = decimals
    reading = f"{says} Read it as: brighter cells hold more observations; up is slower or larger."
    one = Query(expr=expr, format="heatmap", legendFormat="{{le}}", exemplar=exemplar)
    return ModernPanel(
        kind="heatmap", title=title, description=describe(reading, unit, source, unit_words), width=width,
        targets=_lettered([one]),
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
    panel.targets = _lettered([Query(expr=expr, legendFormat=legend)])
    panel.options["color"] |= {"min": 0, "max": maximum, "exponent": 1, "scale": "linear", "reverse": reverse}
    panel.options["cellValues"] = {"unit": unit}
    panel.options["yAxis"] = {"axisPlacement": "left", "reverse": False}
    del panel.options["filterValues"]
    return panel


def state_timeline(
    title: str, says: str, source: str, queries: Sequence[Query], mappings: Sequence[Json], *, width: int = 24,
    unit: str = "none", steps: Steps = ((None, GREY),), unit_words: str = "", no_value: str = "no data",
) -> ModernPanel:  # fmt: skip
    """One row a series, coloured by state over time."""
    return ModernPanel(
        kind="state-timeline", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=_lettered(queries),
        field_config={
            "defaults": {
                "color": {"mode": "thresholds"}, "custom": {"fillOpacity": 80, "lineWidth": 0},
                "mappings": list(mappings), "thresholds": thresholds(steps), "unit": unit, "noValue": no_value,
            },
            "overrides": [],
        },
        options={
            "alignValue": "left", "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": True},
            "mergeValues": True, "rowHeight": 0.85, "showValue": "auto", "tooltip": {"mode": "single", "sort": "none"},
        },
    )  # fmt: skip


def bar_gauge(
    title: str, says: str, source: str, queries: Sequence[Query], unit: str = "percentunit", *, steps: Steps,
    width: int = 12, minimum: float = 0, maximum: float | None = None, unit_words: str = "",
    decimals: int | None = None,
) -> ModernPanel:  # fmt: skip
    """Bars that compare series at one moment."""
    defaults: Json = {
        "color": {"mode": "thresholds"}, "mappings": [], "min": minimum,
        "thresholds": thresholds(steps), "unit": unit,
    }  # fmt: skip
    for key, value in (("max", maximum), ("decimals", decimals)):
        if value is not None:
            defaults[key] = value
    return ModernPanel(
        kind="bargauge", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=_lettered(queries), field_config={"defaults": defaults, "overrides": []},
        options={
            "displayMode": "basic", "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
            "maxVizHeight": 300, "minVizHeight": 16, "minVizWidth": 8, "namePlacement": "left",
            "orientation": "horizontal", "reduceOptions": _reduce(), "showUnfilled": True, "sizing": "auto",
            "valueMode": "color",
        },
    )  # fmt: skip


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
        targets=_lettered(queries), transformations=list(transformations),
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
