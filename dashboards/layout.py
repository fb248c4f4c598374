"""Bands of panels -> panels with grid positions: left to right, no overlap, 24 columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from grafanalib.core import Panel

from dashboards.style import ModernPanel, Section

COLUMNS = 24


@dataclass(frozen=True)
class Band:
    """Panels side by side, *height* grid rows (30 px each) high, under a heading where *title* is set."""

    height: int
    panels: Sequence[ModernPanel]
    title: str = ""


def lay_out(bands: Sequence[Band]) -> list[Panel]:
    """Place the bands under each other.

    Raises ValueError when a band's panels are wider than the grid.
    """
    placed: list[Panel] = []
    y = 0
    for band in bands:
        if band.title:
            placed.append(Section(title=band.title, gridPos={"h": 1, "w": COLUMNS, "x": 0, "y": y}))
            y += 1
        x = 0
        for panel in band.panels:
            if x + panel.width > COLUMNS:
                raise ValueError(
                    f"panel {panel.title!r} ends at column {x + panel.width} of {COLUMNS}; make the band narrower"
                )
            panel.gridPos = {"h": band.height, "w": panel.width, "x": x, "y": y}
            placed.append(panel)
            x += panel.width
        y += band.height
    return placed
