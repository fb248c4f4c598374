"""Numbers and words -> what every panel is made of: colour steps, mappings, descriptions, ref ids."""

from collections.abc import Mapping, Sequence

from dashboards.style import GREEN, ORANGE, RED, SERIES, Json, Query

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

PLAIN_NUMBERS = frozenset({"none", "short"})
"""Units that say nothing beside the number."""

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


def axis_label(unit: str, unit_words: str) -> Json:
    """The words beside the axis where the numbers on it carry no unit."""
    return {"axisLabel": unit_words} if unit in PLAIN_NUMBERS and unit_words else {}


def lettered(queries: Sequence[Query]) -> list[Query]:
    """The queries with their ref ids, A first."""
    for letter, one in zip("ABCDEFGHIJKLMNOP", queries, strict=False):
        one.refId = letter
    return list(queries)


def fixed_colours(queries: Sequence[Query], colours: Sequence[str]) -> list[Json]:
    """A colour for each query, so that a quantile or state looks the same on every page."""
    return [
        {
            "matcher": {"id": "byFrameRefID", "options": one.refId},
            "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": colour}}],
        }
        for one, colour in zip(queries, colours, strict=False)
    ]


def reduced(calc: str = "lastNotNull") -> Json:
    """How a series becomes the one number that is shown."""
    return {"calcs": [calc], "fields": "", "values": False}
