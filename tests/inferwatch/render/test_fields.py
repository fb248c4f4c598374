"""Legends, overrides, mappings: what Grafana would make of a panel's field configuration."""

import math
from typing import Any

import pytest

from inferwatch.promapi import Series
from inferwatch.render.fetch import Answer
from inferwatch.render.fields import field, series_name, tracks


def test_a_legend_takes_labels() -> None:
    """A label that is missing leaves nothing behind."""
    answer = Answer("A", "{{model}} {{ rank }}", "time_series")
    assert series_name(answer, {"model": "m"}) == "m"


def test_an_automatic_legend_is_the_only_label() -> None:
    """One label: its value; several: all of them; none: the metric's name."""
    answer = Answer("A", "__auto", "time_series")
    assert series_name(answer, {"__name__": "x", "code": "2xx"}) == "2xx"
    assert series_name(answer, {"b": "2", "a": "1"}) == "a=1, b=2"
    assert series_name(answer, {"__name__": "x"}) == "x"


def test_an_override_by_query_gives_its_colour(panel: Any) -> None:
    """Quantiles keep their colours on every page."""
    override = {
        "matcher": {"id": "byFrameRefID", "options": "B"},
        "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": "#D55E00"}}],
    }
    one = panel("timeseries", ["a", "b"])
    one["fieldConfig"]["overrides"] = [override]
    assert field(one, "x", "B").fixed_colour == "#D55E00"
    assert field(one, "x", "A").fixed_colour == ""


def test_an_override_nobody_knows_is_an_error(panel: Any) -> None:
    """Drawing on without it would show something else than Grafana."""
    one = panel("timeseries", ["a"])
    one["fieldConfig"]["overrides"] = [{"matcher": {"id": "byType", "options": "number"}, "properties": []}]
    with pytest.raises(ValueError, match="byType"):
        field(one, "x")


def test_mappings_turn_states_into_words(panel: Any) -> None:
    """Value, range and NaN mappings, in this order of precedence by the list."""
    mappings = [
        {"type": "value", "options": {"1": {"text": "up", "color": "#009E73"}}},
        {"type": "range", "options": {"from": 10, "to": 12, "result": {"text": "best", "color": "#0072B2"}}},
        {"type": "special", "options": {"match": "nan", "result": {"text": "–", "color": "transparent"}}},
    ]
    one = field(panel("stat", ["a"], defaults={"mappings": mappings}), "x")
    assert (one.text(1), one.colour(1)) == ("up", "#009E73")
    assert (one.text(10.98), one.colour(10.98)) == ("best", "#0072B2")
    assert one.text(math.nan) == "–"
    assert one.text(0.5) == "0.5"


def test_the_last_value_is_the_last_number(panel: Any) -> None:
    """A NaN at the end is no value; a series of NaN alone has none."""
    series = Series({"a": "1"}, ((0, 1.0), (5, 2.0), (10, math.nan)))
    nothing = Series({"a": "2"}, ((0, math.nan),))
    found = tracks(panel("stat", ["x"]), [Answer("A", "__auto", "time_series", (series, nothing))])
    assert [t.last for t in found] == [2.0, None]
