"""Files and ranges that cannot be used say what is wrong with them."""

import json
from pathlib import Path

import pytest

from inferwatch.render import sources


def test_ranges_are_written_like_grafanas() -> None:
    """6h is six hours."""
    assert [sources.seconds(t) for t in ("30s", "15m", "6h", "2d")] == [30, 900, 21_600, 172_800]


@pytest.mark.parametrize("text", ["", "0m", "h6", "1.5h", "6", "-1h"])
def test_another_range_is_an_error(text: str) -> None:
    """The error shows how to write it."""
    with pytest.raises(sources.SourceError, match="write it like 15m"):
        sources.seconds(text)


def test_a_file_that_is_no_dashboard_is_named(tmp_path: Path) -> None:
    """A dashboard of the new v2 kind, or any other JSON."""
    (tmp_path / "x.json").write_text(json.dumps({"title": "x", "panels": []}), encoding="utf-8")
    with pytest.raises(sources.SourceError, match=r"x\.json: no classic dashboard, it lacks annotations"):
        sources.load_all(tmp_path)


def test_an_empty_folder_says_how_to_fill_it(tmp_path: Path) -> None:
    """No dashboards is no quiet page."""
    with pytest.raises(sources.SourceError, match="inferwatch gen"):
        sources.load_all(tmp_path)


def test_the_committed_dashboards_load() -> None:
    """The SLO overview and the Engine page are there."""
    assert {"inferwatch-slo", "inferwatch-engine"} <= set(sources.load_all())
