"""Bands of panels become grid positions."""

import pytest

from dashboards.layout import Band, lay_out
from dashboards.panels import stat
from dashboards.style import ModernPanel, query


def one(title: str, width: int) -> ModernPanel:
    """A stat of that width."""
    return stat(title, "Says.", "tests", [query("up")], width=width)


def test_bands_lie_under_each_other() -> None:
    """A heading takes a row of its own; the next band starts under the highest."""
    placed = lay_out([Band(5, [one("a", 6), one("b", 18)]), Band(8, [one("c", 24)], "More")])
    assert [(p.title, p.gridPos["x"], p.gridPos["y"], p.gridPos["h"]) for p in placed] == [
        ("a", 0, 0, 5),
        ("b", 6, 0, 5),
        ("More", 0, 5, 1),
        ("c", 0, 6, 8),
    ]


def test_a_band_that_is_too_wide_is_an_error() -> None:
    """Grafana would put the last panel somewhere else."""
    with pytest.raises(ValueError, match="'b' ends at column 26 of 24"):
        lay_out([Band(5, [one("a", 12), one("b", 14)])])
