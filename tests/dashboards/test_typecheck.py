"""Dashboards as literals of Grafana's types: the text that tsc is given, and what its faults are called."""

import copy
from typing import Any

import pytest

from dashboards import typecheck
from dashboards.registry import build_all
from slo.spec import load

BOARDS = build_all(load())


def broken() -> Any:
    """The Engine page with a misspelt heatmap option and a state that is no table cell."""
    board = copy.deepcopy(BOARDS["inferwatch-engine"])
    heatmap = next(p for p in board["panels"] if p["type"] == "heatmap")
    heatmap["options"]["calculat"] = heatmap["options"].pop("calculate")
    return board


@pytest.mark.integration
@pytest.mark.parametrize("major", ["grafana-13", "grafana-11"])
def test_grafanas_own_types_accept_every_dashboard(major: str) -> None:
    """Newest and one older major."""
    assert typecheck.check(BOARDS.values(), major) == []


@pytest.mark.integration
@pytest.mark.parametrize("major", ["grafana-13", "grafana-11"])
def test_a_misspelt_option_is_found_and_its_panel_named(major: str) -> None:
    """The check would be worth nothing if it accepted anything."""
    (fault,) = typecheck.check([broken()], major)
    assert fault.startswith("inferwatch-engine: Time to first token: ")
    assert "calculat" in fault


def test_every_panel_meets_the_type_of_its_kind() -> None:
    """Each panel gives its options to its own plugin's type, each query to the target's."""
    text = typecheck.typescript([BOARDS["inferwatch-engine"]])
    panels = [p for p in BOARDS["inferwatch-engine"]["panels"] if p["type"] != "row"]
    assert text.count(": Plain<HeatmapOptions> =") == sum(p["type"] == "heatmap" for p in panels)
    assert text.count(": Target =") == sum(len(p["targets"]) for p in panels)


def test_a_panel_type_without_types_is_an_error() -> None:
    """It must not pass unseen."""
    board = {**BOARDS["inferwatch-engine"], "panels": [{"type": "canvas", "title": "x"}]}
    with pytest.raises(typecheck.TypecheckError, match="'canvas' has no entry"):
        typecheck.typescript([board])


def test_without_node_the_check_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """No pass without a look."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(typecheck.TypecheckError, match="install node 20"):
        typecheck.check([BOARDS["inferwatch-engine"]], "grafana-13")
