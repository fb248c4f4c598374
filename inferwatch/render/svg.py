"""Shapes -> SVG text; named colours become CSS variables, so that one file is dark and light."""

import base64
import struct
import zlib
from collections.abc import Iterable
from html import escape

from inferwatch.render.canvas import Area, Canvas, Cells, Line, Rect, Shape, Text
from inferwatch.render.theme import rgb

SHRINK = 0.94
"""Fonts of readers differ in width; as in pictures, text is written a little smaller than it was measured."""


def svg(canvas: Canvas) -> str:
    """Return one <svg> element as wide as its place, in proportion."""
    body = "".join(_shape(shape) for shape in canvas.shapes)
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {canvas.width:g} {canvas.height:g}">{body}</svg>'


def _colour(colour: str) -> str:
    return colour if colour.startswith("#") else "none" if colour == "transparent" else f"var(--{colour})"


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _points(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


def _hint(text: str) -> str:
    return f"<title>{escape(text)}</title>" if text else ""


def _shape(shape: Shape) -> str:
    if isinstance(shape, Rect):
        return _rect(shape)
    if isinstance(shape, Line):
        dash = ' stroke-dasharray="4 3"' if shape.dashed else ""
        return (
            f'<polyline points="{_points(shape.points)}" fill="none" stroke="{_colour(shape.colour)}" '
            f'stroke-width="{shape.width:g}" stroke-opacity="{shape.opacity:g}"{dash}>{_hint(shape.hint)}</polyline>'
        )
    if isinstance(shape, Area):
        fill = _colour(shape.fill)
        return f'<polygon points="{_points(shape.points)}" fill="{fill}" fill-opacity="{shape.opacity:.3g}"/>'
    if isinstance(shape, Text):
        weight = ' font-weight="600"' if shape.bold else ""
        return (
            f'<text x="{_n(shape.x)}" y="{_n(shape.y)}" fill="{_colour(shape.colour)}" font-size="{shape.size * SHRINK:g}" '
            f'text-anchor="{shape.anchor}"{weight}>{_hint(shape.hint)}{escape(shape.text)}</text>'
        )
    return _cells(shape)


def _rect(rect: Rect) -> str:
    border = f' stroke="{_colour(rect.border)}"' if rect.border else ""
    radius = f' rx="{rect.radius:g}"' if rect.radius else ""
    return (
        f'<rect x="{_n(rect.x)}" y="{_n(rect.y)}" width="{_n(rect.width)}" height="{_n(rect.height)}" '
        f'fill="{_colour(rect.fill)}" fill-opacity="{rect.opacity:g}"{border}{radius}>{_hint(rect.hint)}</rect>'
    )


def _cells(cells: Cells) -> str:
    data = base64.b64encode(png_of(cells.rows)).decode()
    return (
        f'<image x="{_n(cells.x)}" y="{_n(cells.y)}" width="{_n(cells.width)}" height="{_n(cells.height)}" '
        f'preserveAspectRatio="none" image-rendering="pixelated" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>'
    )


def png_of(rows: tuple[tuple[str, ...], ...]) -> bytes:
    """Rows of colours -> a PNG of one pixel a cell; "" is transparent."""
    lines = b"".join(
        b"\0" + b"".join(bytes((*rgb(c), 255)) if c else b"\0\0\0\0" for c in row) for row in rows
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 6, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines))
        + chunk(b"IEND", b"")
    )
