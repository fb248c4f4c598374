"""Colours: names of ground and text in dark and light, palettes for series, scales for cells.

Series colours are Okabe and Ito's, scales are viridis and cividis: told apart with any colour vision.
"""

import re
from bisect import bisect_right

Rgb = tuple[int, int, int]

DARK = {
    "page": "#111217", "panel": "#181b1f", "border": "#2c3036", "text": "#d8d9da", "muted": "#9fa7b3",
    "grid": "#2b2f36", "error": "#ff8f6b", "empty": "#22262b",
}  # fmt: skip
LIGHT = {
    "page": "#f4f5f5", "panel": "#ffffff", "border": "#d8dadd", "text": "#24292e", "muted": "#5f6772",
    "grid": "#e6e8eb", "error": "#b3370f", "empty": "#eceef0",
}  # fmt: skip
THEMES = {"dark": DARK, "light": LIGHT}

SERIES = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#0072B2", "#D55E00", "#B8A900", "#8C8C8C")

NAMED = {
    "green": "#73bf69", "red": "#f2495c", "orange": "#ff9830", "yellow": "#fade2a", "blue": "#5794f2",
    "purple": "#b877d9", "white": "#ffffff", "black": "#000000", "gray": "#808080",
}  # fmt: skip
"""Colours that dashboards name; shades of them ("dark-red") are drawn as the colour itself."""

_STOPS: dict[str, tuple[str, ...]] = {
    "viridis": ("#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"),
    "cividis": ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"),
    "rdylgr": ("#d73027", "#f46d43", "#fdae61", "#fee08b", "#d9ef8b", "#a6d96a", "#66bd63", "#1a9850"),
    "blues": ("#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b"),
}  # fmt: skip
_REVERSED = {"grylrd": "rdylgr"}
_ALIASES = {"rdylgn": "rdylgr"}


def settled(colour: str, fallback: str = "text") -> str:
    """A colour as dashboards write it (#hex, a name, rgba()) as "#rrggbb"; "transparent" stays, else *fallback*."""
    if colour.startswith("#"):
        return colour[:7]
    if colour == "transparent":
        return colour
    if found := re.match(r"rgba?\((\d+),\s*(\d+),\s*(\d+)", colour):
        return "#{:02x}{:02x}{:02x}".format(*(min(int(part), 255) for part in found.groups()))
    return NAMED.get(colour.rsplit("-", 1)[-1], fallback)


def rgb(colour: str) -> Rgb:
    """ "#rrggbb" -> three numbers of 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def scale(name: str, share: float) -> str:
    """Return the colour at *share* (0..1) of a scale named as Grafana names it ("Viridis", "continuous-RdYlGr")."""
    key = name.lower().removeprefix("continuous-")
    key = _ALIASES.get(key, key)
    if key in _REVERSED:
        return scale(_REVERSED[key], 1 - share)
    stops = _STOPS.get(key, _STOPS["viridis"])
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    low = min(int(place), len(stops) - 2)
    part = place - low
    mixed = (round(a + (b - a) * part) for a, b in zip(rgb(stops[low]), rgb(stops[low + 1]), strict=True))
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def threshold_colour(steps: list[dict[str, object]], value: float) -> str:
    """Return the colour of the last step whose value is not over *value* (the first step has none)."""
    bounds = [float(s["value"]) for s in steps[1:] if isinstance(s["value"], int | float)]
    return settled(str(steps[bisect_right(bounds, value)]["color"]))


def readable_on(colour: str) -> str:
    """Black or white, whichever is easier to read on *colour*."""
    r, g, b = rgb(colour)
    return "#101010" if 0.299 * r + 0.587 * g + 0.114 * b > 140 else "#ffffff"
