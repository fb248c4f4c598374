"""A drawn page -> a PNG, through matplotlib's rasteriser; needs the extra `render`."""

import io
from typing import Literal

from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import FigureImage
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch, Polygon, Rectangle
from matplotlib.text import Text as Writing
from matplotlib.transforms import IdentityTransform
from numpy import arange, array, uint8

from inferwatch.render.canvas import Area, Canvas, Cells, Line, Rect, Shape, Text
from inferwatch.render.html import when
from inferwatch.render.page import GAP, Page
from inferwatch.render.theme import THEMES, rgb

DPI = 100
_ANCHORS: dict[str, Literal["left", "center", "right"]] = {
    "start": "left",
    "middle": "center",
    "end": "right",
}
HEAD = 54.0


def png(page: Page, theme: str = "dark", scale: float = 1.0) -> bytes:
    """Return the whole page as a PNG of *scale* pixels a unit, on a *theme* (dark or light) ground."""
    sheet = Canvas(page.width, page.height + HEAD)
    sheet.add(
        Text(GAP + 4, 26, page.title, "text", 18, bold=True), Text(GAP + 4, 45, when(page), "muted", 11)
    )
    placed = [(sheet, 0.0, 0.0), *((p.canvas, p.x, p.y + HEAD) for p in page.panels)]
    return _raster(placed, sheet.width, sheet.height, THEMES[theme], scale)


def panel_png(canvas: Canvas, theme: str = "dark", scale: float = 1.0) -> bytes:
    """Return one panel as a PNG, for a notification."""
    return _raster([(canvas, 0.0, 0.0)], canvas.width, canvas.height, THEMES[theme], scale)


def _raster(
    placed: list[tuple[Canvas, float, float]], width: float, height: float, ground: dict[str, str], scale: float
) -> bytes:  # fmt: skip
    figure = Figure(figsize=(width * scale / DPI, height * scale / DPI), dpi=DPI, facecolor=ground["page"])
    FigureCanvasAgg(figure)  # gives the figure its rasteriser
    pen = _Pen(figure, height, ground, scale)
    for canvas, x, y in placed:
        for shape in canvas.shapes:
            pen.draw(shape, x, y)
    out = io.BytesIO()
    figure.savefig(
        out, format="png", facecolor=ground["page"], metadata={"Software": "inferwatch"},
        pil_kwargs={"compress_level": 6},
    )  # fmt: skip
    return out.getvalue()


class _Pen:
    """Puts shapes on a figure whose coordinates are pixels from the top left."""

    def __init__(self, figure: Figure, height: float, ground: dict[str, str], scale: float) -> None:
        self.figure, self.height, self.ground, self.scale = figure, height, ground, scale
        self.drawn = 0
        self.fonts: dict[tuple[float, bool], FontProperties] = {}

    def draw(self, shape: Shape, x: float, y: float) -> None:
        """Put one shape, moved by *x* and *y*."""
        if isinstance(shape, Text):
            self._text(shape, x, y)
        elif isinstance(shape, Cells):
            self._cells(shape, x, y)
        elif isinstance(shape, Line):
            xs, ys = zip(*(self._at(px + x, py + y) for px, py in shape.points), strict=True)
            line = Line2D(
                xs, ys, color=self._colour(shape.colour), linewidth=self._points(shape.width),
                linestyle="--" if shape.dashed else "-", alpha=shape.opacity, solid_joinstyle="round", transform=None,
            )  # fmt: skip
            self._put(line)
        elif isinstance(shape, Area):
            corners = [self._at(px + x, py + y) for px, py in shape.points]
            area = Polygon(
                corners, facecolor=self._colour(shape.fill), alpha=shape.opacity, linewidth=0, transform=None
            )
            self._put(area)
        elif shape.fill != "transparent":
            self._rect(shape, x, y)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return x * self.scale, (self.height - y) * self.scale

    def _points(self, pixels: float) -> float:
        return pixels * self.scale * 72 / DPI

    def _colour(self, colour: str) -> str:
        return (
            colour if colour.startswith("#") else "none" if colour == "transparent" else self.ground[colour]
        )

    def _rect(self, rect: Rect, x: float, y: float) -> None:
        left, bottom = self._at(rect.x + x, rect.y + rect.height + y)
        wide, tall = max(rect.width, 0.0) * self.scale, max(rect.height, 0.0) * self.scale
        corner = rect.radius * self.scale
        patch: Patch
        if corner and min(wide, tall) > 2 * corner:
            rounding = f"round,pad=0,rounding_size={corner:g}"
            patch = FancyBboxPatch((left, bottom), wide, tall, boxstyle=rounding, transform=None)
        else:
            patch = Rectangle((left, bottom), wide, tall, transform=None)
        patch.set_facecolor(self._colour(rect.fill))
        patch.set_edgecolor(self._colour(rect.border) if rect.border else "none")
        patch.set_linewidth(0.7 if rect.border else 0)
        patch.set_alpha(rect.opacity)
        self._put(patch)

    def _text(self, text: Text, x: float, y: float) -> None:
        if not text.text:
            return
        key = (text.size, text.bold)
        if key not in self.fonts:
            weight = "bold" if text.bold else "normal"
            self.fonts[key] = FontProperties(
                family="DejaVu Sans", size=self._points(text.size * 0.94), weight=weight
            )
        px, py = self._at(text.x + x, text.y + y)
        # parse_math off: a "$" in a label is a dollar sign, not mathematics.
        written = Writing(
            px, py, text.text, color=self._colour(text.colour), horizontalalignment=_ANCHORS[text.anchor],
            verticalalignment="baseline", fontproperties=self.fonts[key], parse_math=False, transform=None,
        )  # fmt: skip
        self._put(written)

    def _cells(self, cells: Cells, x: float, y: float) -> None:
        pixels = array(
            [[(*rgb(c), 255) if c else (0, 0, 0, 0) for c in row] for row in cells.rows], dtype=uint8
        )
        left, bottom = self._at(cells.x + x, cells.y + cells.height + y)
        right, top = self._at(cells.x + cells.width + x, cells.y + y)
        wide, tall = max(round(right) - round(left), 1), max(round(top) - round(bottom), 1)
        enlarged = pixels[arange(tall) * len(pixels) // tall][:, arange(wide) * pixels.shape[1] // wide]
        image = FigureImage(self.figure, offsetx=round(left), offsety=round(bottom), origin="upper")
        image.set_data(enlarged)
        image.set_transform(IdentityTransform())
        self._put(image)

    def _put(self, artist: Artist) -> None:
        """Later shapes lie over earlier ones; matplotlib alone would sort them by kind."""
        self.drawn += 1
        artist.set_zorder(self.drawn)
        self.figure.add_artist(artist)
