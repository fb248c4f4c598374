"""Shapes in pixels: what panels draw on, and what the HTML page and the picture both come from.

A colour is "#rrggbb" or a name of theme.DARK and theme.LIGHT, settled when the shape is written out.
"""

from dataclasses import dataclass, field

Point = tuple[float, float]


@dataclass(frozen=True)
class Rect:
    """A filled rectangle; *hint* is what a pointer resting on it shows."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    opacity: float = 1.0
    radius: float = 0.0
    border: str = ""
    hint: str = ""


@dataclass(frozen=True)
class Line:
    """A line through *points*."""

    points: tuple[Point, ...]
    colour: str
    width: float = 1.0
    dashed: bool = False
    opacity: float = 1.0
    hint: str = ""


@dataclass(frozen=True)
class Area:
    """A filled polygon."""

    points: tuple[Point, ...]
    fill: str
    opacity: float


@dataclass(frozen=True)
class Text:
    """One line of text; *y* is its baseline, *anchor* start, middle or end."""

    x: float
    y: float
    text: str
    colour: str = "text"
    size: float = 11.0
    anchor: str = "start"
    bold: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Cells:
    """A grid of colours over a rectangle, top row first; "" leaves the ground to be seen."""

    x: float
    y: float
    width: float
    height: float
    rows: tuple[tuple[str, ...], ...]


Shape = Rect | Line | Area | Text | Cells


@dataclass
class Canvas:
    """A surface of *width* × *height* pixels that collects shapes, later ones over earlier ones."""

    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        """Put shapes on top."""
        self.shapes.extend(shapes)


_NARROW, _WIDE = frozenset("iIjl.,:;|!'()[]{}ft/ ·-"), frozenset("mwMW@%—")


def text_width(text: str, size: float = 11.0, bold: bool = False) -> float:
    """Pixels that *text* takes, rather too many than too few, in any sans-serif font."""
    ems = sum(0.34 if c in _NARROW else 0.96 if c in _WIDE else 0.66 if c.isupper() else 0.575 for c in text)
    return ems * size * (1.14 if bold else 1.0)


def fit(text: str, width: float, size: float = 11.0, bold: bool = False) -> str:
    """*text*, cut with an ellipsis where it is wider than *width* pixels."""
    if text_width(text, size, bold) <= width:
        return text
    while text and text_width(text + "…", size, bold) > width:
        text = text[:-1]
    return text.rstrip() + "…" if text else ""
