"""Variables become PromQL; intervals are what Grafana would make them."""

from typing import Any

import pytest

from inferwatch.render.variables import VariableError, chosen, fill_in, window


def test_a_short_range_keeps_four_scrapes_in_each_rate() -> None:
    """Five minutes at 5 s scrapes: steps of 5 s, rates over 20 s."""
    view = window(1000, 1300, 5)
    assert (view.step_seconds, view.rate_interval_seconds) == (5, 20)


def test_a_long_range_widens_the_rate_with_the_step() -> None:
    """A day in 240 points: steps of 360 s, rates over a step and a scrape, so that nothing is skipped."""
    view = window(0, 86_400, 5)
    assert (view.step_seconds, view.rate_interval_seconds) == (360, 365)


def test_steps_are_aligned() -> None:
    """The same moment is read at every refresh."""
    view = window(1003, 1307, 5)
    assert (view.start, view.end) == (1000, 1305)


def test_all_values_are_the_variables_own(dashboard: Any) -> None:
    """Nothing picked: `.*`, so that series without the label stay in."""
    assert chosen(dashboard(), {}) == {"service": ".*"}


def test_several_values_are_one_pattern(dashboard: Any) -> None:
    """Dots are literal; backslashes are doubled as PromQL strings need."""
    assert chosen(dashboard(), {"service": ["a.b", "c"]}) == {"service": r"(a\\.b|c)"}


def test_a_value_cannot_leave_its_string(dashboard: Any) -> None:
    """A quote stays inside the matcher, a backslash is a backslash: nothing picked becomes a query."""
    picked = chosen(dashboard(), {"service": ['x"} or vector(1) #']})["service"]
    assert picked == 'x\\"\\\\} or vector\\\\(1\\\\) #'
    assert chosen(dashboard(), {"service": ["a\\b"]})["service"] == "a" + "\\" * 4 + "b"


def test_an_unknown_variable_is_named(dashboard: Any) -> None:
    """The error says what there is."""
    with pytest.raises(VariableError, match="no variable modle; it has service"):
        chosen(dashboard(), {"modle": ["x"]})


def test_a_query_is_filled_in() -> None:
    """Both spellings, and `$1` of label_replace left alone."""
    view = window(0, 300, 5)
    expr = 'label_replace(rate(x{service=~"$service",m="${model:regex}"}[$__rate_interval]), "a", "$1", "b", "(.*)")'
    filled = fill_in(expr, {"service": "llm", "model": "m1"}, view)
    assert filled == 'label_replace(rate(x{service=~"llm",m="m1"}[20s]), "a", "$1", "b", "(.*)")'


def test_a_variable_that_nobody_defines_is_an_error() -> None:
    """Grafana would send it as text and show nothing."""
    with pytest.raises(VariableError, match=r"uses \$nope"):
        fill_in('x{a="$nope"}', {}, window(0, 300, 5))
