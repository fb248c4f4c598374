"""One self-contained page: nothing is fetched, nothing from a label becomes markup."""

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from inferwatch.promapi import Series
from inferwatch.render.html import html
from inferwatch.render.page import draw
from inferwatch.render.svg import svg
from inferwatch.render.variables import window

EVIL = "<script>alert(1)</script>\"'&"


def page(panel: Any, dashboard: Any, told: Any) -> Any:
    """A page with one hostile label."""
    series = [Series({"a": EVIL}, ((0, 1.0), (5, 2.0)))]
    return draw(dashboard(panel("timeseries", ["x"])), told({"x": series}), window(0, 100, 5))


def test_a_label_is_text(panel: Any, dashboard: Any, told: Any) -> None:
    """A model called <script> is shown and not run; the drawing stays well-formed XML."""
    made = page(panel, dashboard, told)
    assert "<script" not in html(made)
    drawing = ElementTree.fromstring(svg(made.panels[0].canvas))
    assert any(EVIL in (e.text or "") for e in drawing.iter())


def test_nothing_is_fetched(panel: Any, dashboard: Any, told: Any) -> None:
    """No src, no url(), no href but to the other pages and data in place."""
    text = html(page(panel, dashboard, told), links=[("Dashboard", "d.html")])
    assert not re.search(r"\ssrc=|url\(|@import", text)
    assert re.findall(r'href="([^"]*)"', text) == ["d.html"]
    assert "http://www.w3.org/2000/svg" in re.findall(r"https?://[^\"' ]+", text)
    assert set(re.findall(r"https?://[^\"' >]+", text)) == {"http://www.w3.org/2000/svg"}


def test_dark_light_and_both(panel: Any, dashboard: Any, told: Any) -> None:
    """By itself the page follows the reader; told a theme, it keeps to it."""
    made = page(panel, dashboard, told)
    assert "prefers-color-scheme" in html(made)
    assert "#111217" not in html(made, theme="light")
    assert "#f4f5f5" not in html(made, theme="dark")


def test_a_refresh_is_asked_for_only_when_wanted(panel: Any, dashboard: Any, told: Any) -> None:
    """A saved page does not reload."""
    made = page(panel, dashboard, told)
    assert "http-equiv" not in html(made)
    assert 'content="30"' in html(made, refresh_seconds=30)
