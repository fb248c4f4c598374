"""Pictures: as large as the page, drawn in the order of the shapes, in the theme's colours."""

import io
from typing import Any

import numpy as np
from matplotlib.image import imread

from inferwatch.promapi import Series
from inferwatch.render.canvas import Canvas, Cells, Line, Rect, Text
from inferwatch.render.page import draw
from inferwatch.render.picture import HEAD, panel_png, png
from inferwatch.render.variables import window


def pixels(data: bytes) -> Any:
    """RGB of 0 to 255, top row first."""
    return np.round(imread(io.BytesIO(data), format="png")[..., :3] * 255).astype(int)


def test_shapes_lie_where_they_are_put() -> None:
    """Top left is top left, and what comes later lies above whatever its kind."""
    canvas = Canvas(100, 50)
    canvas.add(
        Rect(0, 0, 100, 50, "#000000"),
        Line(((0, 10.5), (100, 10.5)), "#ff0000", 4),
        Rect(50, 0, 50, 20, "#00ff00"),
        Cells(0, 30, 40, 20, (("#0000ff", ""), ("", "#ffffff"))),
    )
    image = pixels(panel_png(canvas))
    assert image.shape[:2] == (50, 100)
    assert image[10, 20].tolist() == [255, 0, 0]
    assert image[10, 75].tolist() == [0, 255, 0]
    assert image[35, 10].tolist() == [0, 0, 255]
    assert image[45, 30].tolist() == [255, 255, 255]
    assert image[35, 30].tolist() == [0, 0, 0]


def test_a_dollar_is_a_dollar() -> None:
    """Labels are not mathematics; half of one would be an error."""
    canvas = Canvas(100, 30)
    canvas.add(Text(5, 20, "cost $1 ^_{", "#ffffff"))
    assert pixels(panel_png(canvas)).max() > 200


def test_a_page_has_the_size_of_its_dashboard_and_the_ground_of_its_theme(
    panel: Any, dashboard: Any, told: Any
) -> None:
    """Dark by default, light when asked."""
    series = [Series({"a": "1"}, ((0, 1.0), (5, 2.0)))]
    page = draw(dashboard(panel("timeseries", ["x"])), told({"x": series}), window(0, 100, 5))
    dark, light = pixels(png(page)), pixels(png(page, "light"))
    assert dark.shape[:2] == (round(page.height + HEAD), round(page.width))
    assert dark[-1, -1].tolist() == [0x11, 0x12, 0x17]
    assert light[-1, -1].tolist() == [0xF4, 0xF5, 0xF5]
