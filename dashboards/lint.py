"""Classic dashboard JSON and data source files -> what would break or mislead on Grafana 11 to 13, in words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dashboards.steps import PLAIN_NUMBERS
from slo.duration import parse_seconds

Json = Mapping[str, Any]

SCHEMA_VERSIONS = range(39, 43)
MOST_PANELS = 17
RATIO_NAMES = re.compile(r"\b\w+(?:_ratio|:ratio\w*|_perc|_utilization|_usage)\b")
_BY_LE = re.compile(r"\bby\s*\(\s*le\s*\)")
_RATE = re.compile(r"\b(?:rate|irate|increase|delta)\s*\(")
_WINDOW = re.compile(r"\[(\d+\w*)\]")


def dashboard(board: Json, provisioned_uids: Sequence[str] = ()) -> list[str]:
    """Return one line a fault of one dashboard; [] is right."""
    faults = [*_frame(board), *datasources(board, provisioned_uids)]
    if path := _null(board):
        faults.append(f"{path} is null; leave the key out")
    for one in board.get("panels", ()):
        if one["type"] != "row":
            faults += [f"panel {one.get('title', '?')!r}: {fault}" for fault in panel(one)]
    return faults


def _frame(board: Json) -> Iterator[str]:
    if board.get("schemaVersion") not in SCHEMA_VERSIONS:
        yield f"schemaVersion {board.get('schemaVersion')}; write one of {list(SCHEMA_VERSIONS)}"
    if not board.get("uid"):
        yield "no uid; links to it would break at every import"
    for key in ("rows", "__inputs", "style", "hideControls", "sharedCrosshair", "gnetId"):
        if key in board:
            yield f"key {key!r} is of an older Grafana; leave it out"
    ids = [one.get("id") for one in board.get("panels", ())]
    if len(set(ids)) != len(ids) or None in ids:
        yield f"panel ids {ids} are not each its own"
    shown = [one for one in board.get("panels", ()) if one["type"] != "row"]
    if len(shown) > MOST_PANELS:
        yield f"{len(shown)} panels; a reader takes in {MOST_PANELS}, split the page"
    yield from _overlaps(board.get("panels", ()))


def _overlaps(panels: Sequence[Json]) -> Iterator[str]:
    taken: dict[tuple[int, int], str] = {}
    for one in panels:
        at = one.get("gridPos")
        if not at:
            yield f"panel {one.get('title')!r} has no gridPos"
            continue
        if at["x"] + at["w"] > 24:
            yield f"panel {one.get('title')!r} ends right of column 24"
        cells = [(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
        if under := next((taken[c] for c in cells if c in taken), None):
            yield f"panels {under!r} and {one.get('title')!r} overlap"
        taken.update({cell: str(one.get("title")) for cell in cells})


def _null(value: object, path: str = "") -> str:
    """Path of the first null, "" where there is none; the first threshold's value has to be one."""
    if isinstance(value, dict):
        for key, part in value.items():
            if part is None and not re.search(r"\.steps\[0\]$", path):
                return f"{path}.{key}".lstrip(".")
            if found := _null(part, f"{path}.{key}"):
                return found
    if isinstance(value, list):
        for place, part in enumerate(value):
            if found := f"{path}[{place}]" if part is None else _null(part, f"{path}[{place}]"):
                return found
    return ""


def datasources(board: Json, provisioned_uids: Sequence[str]) -> list[str]:
    """Data sources that a fresh Grafana with only *provisioned_uids* would not find."""
    variables = {
        v["name"] for v in board.get("templating", {}).get("list", ()) if v.get("type") == "datasource"
    }
    faults = [
        f"unresolved __inputs {i['name']}; export it for provisioning" for i in board.get("__inputs", ())
    ]
    places = [
        (one.get("title") or one["type"], one) for one in board.get("panels", ()) if one["type"] != "row"
    ]
    places += [
        (f"{title} query", t) for title, p in list(places) for t in p.get("targets", ()) if "datasource" in t
    ]
    places += [
        (v["name"], v) for v in board.get("templating", {}).get("list", ()) if v.get("type") == "query"
    ]
    places += [(a["name"], a) for a in board.get("annotations", {}).get("list", ())]
    for title, one in places:
        source = one.get("datasource")
        uid = source.get("uid", "") if isinstance(source, Mapping) else ""
        variable = re.fullmatch(r"\$\{?(\w+)\}?", uid)
        if not uid:
            faults.append(f"{title}: data source {source!r}; write {{type, uid}}")
        elif variable and variable[1] not in variables:
            faults.append(f"{title}: no data source variable {variable[1]!r}")
        elif not variable and uid not in provisioned_uids:
            faults.append(f"{title}: uid {uid!r} is not provisioned; use a data source variable")
    return faults


def panel(one: Json) -> list[str]:
    """Faults of one panel."""
    return [
        *_says(one),
        *_units(one),
        *_queries(one),
        *(heatmap(one) if one.get("type") == "heatmap" else ()),
    ]


def _says(one: Json) -> Iterator[str]:
    said = one.get("description", "")
    if "Unit: " not in said or "Source: " not in said:
        yield "its description must say what it shows, its unit and its source"


def _units(one: Json) -> Iterator[str]:
    """A ratio is 0 to 1 with percentunit: not multiplied by 100, not compared with 90."""
    defaults = one.get("fieldConfig", {}).get("defaults", {})
    exprs = [t.get("expr", "") for t in one.get("targets", ())]
    axis = one.get("options", {}).get("yAxis", {}) if one.get("type") == "heatmap" else {}
    label = defaults.get("custom", {}).get("axisLabel") or axis.get("axisLabel")
    numbers = {"timeseries": defaults.get("unit", "none"), "heatmap": axis.get("unit", "")}.get(
        one.get("type", "")
    )
    if numbers in PLAIN_NUMBERS and not label:
        yield "plain numbers on its axis; say what they count with axisLabel"
    if defaults.get("unit") == "percentunit":
        if any(re.search(r"\b100\s*\*|\*\s*100\b", e) for e in exprs):
            yield "x100 combined with percentunit"
        for step in defaults.get("thresholds", {}).get("steps", ()):
            if step.get("value") is not None and not -1 <= step["value"] <= 1:
                yield f"threshold {step['value']:g} out of range for a 0..1 metric"
    for expr in exprs:
        for match in re.finditer(r"([><]=?)\s*(\d+(?:\.\d+)?)", expr):
            if float(match[2]) > 1 and RATIO_NAMES.search(expr[: match.start()].rsplit(")", 1)[-1]):
                yield f"threshold {match[2]} out of range for a 0..1 metric"


def _queries(one: Json) -> Iterator[str]:
    refs = [t.get("refId") for t in one.get("targets", ())]
    if len(set(refs)) != len(refs) or None in refs:
        yield f"refIds {refs} are not each its own"
    for target in one.get("targets", ()):
        if "intervalFactor" in target:
            yield "intervalFactor is of an older Grafana; it skips data"
        if _RATE.search(target.get("expr", "")) and _WINDOW.search(target["expr"]):
            yield f"a fixed rate window in {target['expr']!r}; write [$__rate_interval]"


def heatmap(one: Json) -> list[str]:
    """Why a heatmap of a histogram would show buckets out of order or cumulative counts; [] is right."""
    faults = []
    for target in one.get("targets", ()):
        expr = target.get("expr", "")
        if "_bucket" not in expr and not _BY_LE.search(expr):
            continue  # a row a series: nothing is cumulative, and rows have no order to lose
        if target.get("format") != "heatmap":
            faults.append(f"format {target.get('format')!r}: buckets would be sorted as text; write heatmap")
        if target.get("legendFormat") != "{{le}}":
            faults.append(f"legend {target.get('legendFormat')!r}; write {{{{le}}}}")
        if not _BY_LE.search(expr):
            faults.append("aggregate by le alone; other labels make buckets of their own")
    if one.get("options", {}).get("calculate"):
        faults.append("options.calculate would make buckets of buckets; leave it off")
    return faults


def rate_interval_seconds(datasource_file: Json) -> int:
    """The shortest $__rate_interval that Grafana gives with this data source file, in seconds."""
    return 4 * _time_interval(datasource_file)


def _time_interval(datasource_file: Json) -> int:
    stated = [
        parse_seconds(d["jsonData"]["timeInterval"])
        for d in datasource_file["datasources"]
        if d["type"] == "prometheus" and d.get("jsonData", {}).get("timeInterval")
    ]
    return min(stated, default=15)


def datasource(datasource_file: Json, scrape_seconds: int) -> list[str]:
    """Faults of a data source file for a Prometheus whose slowest scrape interval is *scrape_seconds*."""
    faults = []
    for one in datasource_file["datasources"]:
        if one["type"] == "prometheus" and not one.get("uid"):
            faults.append(f"data source {one['name']!r} has no uid; Grafana would derive one from its name")
    if _time_interval(datasource_file) != scrape_seconds:
        faults.append(
            f"jsonData.timeInterval must be the scrape interval, {scrape_seconds} s, and is "
            f"{_time_interval(datasource_file)} s; $__rate_interval would hold too few samples"
        )
    return faults
