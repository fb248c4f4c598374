"""Text never takes more room than it was measured to."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from inferwatch.render.canvas import fit, text_width

TEXTS = [
    "127.0.0.1:18001",
    "72.7 ms · max 84.1 ms",
    "Finished requests by reason",
    "WWW mmm @@@",
    "iiill",
    "–",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("bold", [False, True])
def test_text_is_not_measured_too_narrow(text: str, bold: bool) -> None:
    """Against the widest of the fonts used, DejaVu Sans, as pictures are drawn with it."""
    canvas = FigureCanvasAgg(Figure(dpi=72))
    font = FontProperties(family="DejaVu Sans", size=11 * 0.94, weight="bold" if bold else "normal")
    width, _, _ = canvas.get_renderer().get_text_width_height_descent(text, font, False)
    assert text_width(text, 11, bold) >= width


def test_a_text_that_does_not_fit_is_cut() -> None:
    """It ends in an ellipsis inside the room; one that fits is left alone."""
    assert fit("short", 100) == "short"
    cut = fit("a-very-long-instance-name:8000", 80)
    assert cut.endswith("…")
    assert text_width(cut) <= 80
    assert fit("text", 3) == ""
