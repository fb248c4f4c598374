"""A panel's field configuration -> the unit, name, colour and bounds of one series or column."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from inferwatch.promapi import Sample, Series
from inferwatch.render import theme
from inferwatch.render.fetch import Answer
from inferwatch.render.units import show

Json = Mapping[str, Any]


class FieldError(ValueError):
    """A field configuration that cannot be shown as Grafana would; the text says why."""


@dataclass(frozen=True)
class Field:
    """How values of one series or column are shown; *settings* is Grafana's merged field configuration."""

    name: str
    settings: Json

    @property
    def unit(self) -> str:
        """Grafana's id of the unit."""
        return str(self.settings.get("unit", "short"))

    def text(self, value: float) -> str:
        """The value as a reader sees it: mapped to a word where a mapping says so."""
        mapped = _mapped(self.settings, value)
        if mapped and "text" in mapped:
            return str(mapped["text"])
        return show(value, self.unit, self.settings.get("decimals"))

    def colour(self, value: float, fallback: str = "text") -> str:
        """The value's colour: its mapping's, else by the colour mode."""
        mapped = _mapped(self.settings, value)
        if mapped and "color" in mapped:
            return theme.settled(str(mapped["color"]))
        mode = self.settings.get("color", {})
        if value != value:
            return "muted"
        if mode.get("mode") == "fixed":
            return theme.settled(str(mode["fixedColor"]))
        if str(mode.get("mode", "")).startswith("continuous"):
            low, high = self.settings.get("min", 0.0), self.settings.get("max", 1.0)
            return theme.scale(mode["mode"], (value - low) / (high - low or 1))
        if mode.get("mode") == "thresholds":
            return theme.threshold_colour(self.settings["thresholds"]["steps"], value)
        return fallback

    @property
    def fixed_colour(self) -> str:
        """The colour a series was given by name, "" where it takes one from the palette."""
        mode = self.settings.get("color", {})
        return theme.settled(str(mode["fixedColor"])) if mode.get("mode") == "fixed" else ""


def field(panel: Json, name: str, ref_id: str = "") -> Field:
    """Defaults of the panel with the overrides that match the name or query, later ones winning."""
    defaults = panel["fieldConfig"]["defaults"]
    settings = {**defaults, "custom": dict(defaults.get("custom", {}))}
    for override in panel["fieldConfig"]["overrides"]:
        if not _matches(override["matcher"], name, ref_id):
            continue
        for entry in override["properties"]:
            part, _, key = entry["id"].partition(".")
            if part == "custom":
                settings["custom"][key] = entry["value"]
            else:
                settings[part] = entry["value"]
    return Field(str(settings.get("displayName", name)), settings)


def _matches(matcher: Json, name: str, ref_id: str) -> bool:
    kind, options = matcher["id"], matcher["options"]
    if kind == "byFrameRefID":
        return bool(options == ref_id)
    if kind == "byName":
        return bool(options == name)
    if kind == "byRegexp":
        return re.search(str(options).strip("/"), name) is not None
    raise FieldError(f"the renderer does not know the override matcher {kind!r}; add it to fields.py")


def _mapped(settings: Json, value: float) -> Json | None:
    for mapping in settings.get("mappings", ()):
        options = mapping["options"]
        if mapping["type"] == "value" and value == value and value == int(value):
            found: Json | None = options.get(str(int(value)))
            if found:
                return found
        if mapping["type"] == "range" and options["from"] <= value <= options["to"]:
            ranged: Json = options["result"]
            return ranged
        if mapping["type"] == "special" and options["match"] in ("nan", "null+nan") and value != value:
            result: Json = options["result"]
            return result
    return None


_LABEL = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def series_name(answer: Answer, labels: Mapping[str, str]) -> str:
    """The legend of one series, as Grafana makes it from the target's legend format."""
    if answer.legend and answer.legend != "__auto":
        return _LABEL.sub(lambda m: labels.get(m[1], ""), answer.legend).strip()
    shown = {k: v for k, v in labels.items() if k != "__name__"}
    if not shown:
        return labels.get("__name__", answer.ref_id)
    if len(shown) == 1:
        return next(iter(shown.values()))
    return ", ".join(f"{k}={v}" for k, v in sorted(shown.items()))


@dataclass(frozen=True)
class Track:
    """One named series ready to draw."""

    field: Field
    points: tuple[tuple[float, float], ...]

    @property
    def last(self) -> float | None:
        """The last value that is a number, None where there is none."""
        return next((v for _, v in reversed(self.points) if v == v), None)


def tracks(panel: Json, given: Sequence[Answer]) -> list[Track]:
    """All series of a panel, named; an instant answer is a series of one point."""
    found = []
    for answer in given:
        ordered: list[Series | Sample] = [*answer.series, *answer.samples]
        for one in sorted(ordered, key=lambda s: series_name(answer, s.labels)):
            points = one.points if isinstance(one, Series) else ((one.timestamp, one.value),)
            found.append(Track(field(panel, series_name(answer, one.labels), answer.ref_id), points))
    return found
