"""One function a panel type, for series and single numbers; grids of coloured cells stand in grids.py."""

from collections.abc import Sequence

from dashboards.steps import PLAIN, Steps, axis_label, describe, fixed_colours, lettered, reduced, thresholds
from dashboards.style import GREY, SERIES, Json, ModernPanel, Query


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
        targets=lettered(queries), field_config={"defaults": defaults, "overrides": list(overrides)},
        options={
            "colorMode": "value", "graphMode": "area" if spark else "none", "justifyMode": "auto",
            "orientation": "auto", "percentChangeColorMode": "standard", "reduceOptions": reduced(),
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
    targets = lettered(queries)
    custom: Json = {
        "axisPlacement": "auto", "drawStyle": "line", "lineInterpolation": "linear", "lineWidth": 2 if not stack else 1,
        "fillOpacity": 35 if stack else 8, "gradientMode": "none", "pointSize": 4, "showPoints": "auto",
        "spanNulls": False, "stacking": {"group": "A", "mode": "normal" if stack else "none"},
        "scaleDistribution": {"type": "log", "log": 10} if log else {"type": "linear"},
        "thresholdsStyle": {"mode": "line+area" if limits else "off"},
        **axis_label(unit, unit_words),
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
    fixed = [] if many else fixed_colours(targets, colours)
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
        targets=lettered([across, up]),
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


def state_timeline(
    title: str, says: str, source: str, queries: Sequence[Query], mappings: Sequence[Json], *, width: int = 24,
    unit: str = "none", steps: Steps = ((None, GREY),), unit_words: str = "", no_value: str = "no data",
) -> ModernPanel:  # fmt: skip
    """One row a series, coloured by state over time."""
    return ModernPanel(
        kind="state-timeline", title=title, description=describe(says, unit, source, unit_words), width=width,
        targets=lettered(queries),
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
        targets=lettered(queries), field_config={"defaults": defaults, "overrides": []},
        options={
            "displayMode": "basic", "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
            "maxVizHeight": 300, "minVizHeight": 16, "minVizWidth": 8, "namePlacement": "left",
            "orientation": "horizontal", "reduceOptions": reduced(), "showUnfilled": True, "sizing": "auto",
            "valueMode": "color",
        },
    )  # fmt: skip
