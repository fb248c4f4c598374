"""A day drawn from recorded steps: counters add what was recorded, idle steps add nothing."""

import random

import pytest

from inferwatch.replay.day import Day, busy_share, look_seconds, merged, parsed, stretched, told

PAGES = [
    {'llm_requests_total{m="a"}': 10.0, "llm_requests_running": 2.0, "llm_generation_tokens_total": 100.0},
    {'llm_requests_total{m="a"}': 13.0, "llm_requests_running": 4.0, "llm_generation_tokens_total": 160.0},
]


def test_every_series_goes_by_the_same_step() -> None:
    """The one recorded step adds 3 requests and 60 tokens; an idle one adds none and has nothing running."""
    day = stretched(PAGES, 400, 5, random.Random(1))
    requests, running = day['llm_requests_total{m="a"}'], day["llm_requests_running"]
    tokens = day["llm_generation_tokens_total"]
    for before, after, at_end, earlier, later in zip(
        requests, requests[1:], running[1:], tokens, tokens[1:], strict=False
    ):
        assert (after - before, at_end, later - earlier) in ((3.0, 4.0, 60.0), (0.0, 0.0, 0.0))
    # Half past midnight is a third of the way up from the night's low: some steps are busy, some idle.
    assert 0 < (requests[-1] - 10) / 3 < 399


def test_a_restart_of_the_recorded_engine_never_lowers_a_counter() -> None:
    """A counter that fell in the recording adds nothing there."""
    fallen = [{"a_total": 5.0}, {"a_total": 1.0}]
    assert set(stretched(fallen, 50, 5, random.Random(1))["a_total"]) == {5.0}


def test_series_that_come_and_go_are_left_out() -> None:
    """Only what every page has can go on for a day."""
    assert list(stretched([{"a_total": 1.0, "b_total": 1.0}, {"a_total": 2.0}], 3, 5, random.Random(1))) == [
        "a_total"
    ]


@pytest.mark.parametrize(("hour", "share"), [(4, 0.15), (10, 0.55), (16, 0.95), (22, 0.55)])
def test_nights_are_quiet(hour: int, share: float) -> None:
    """15 % of the steps are busy at four in the morning, 95 % twelve hours later, half way between."""
    assert busy_share(hour * 3600) == pytest.approx(share)


def test_a_page_is_read_with_its_labels() -> None:
    """Comments are left out; a brace or a space within a label value is none of the syntax."""
    page = '# HELP a b\n# TYPE a counter\na_total{x="p q",y="}"} 3\nb 1e+06\n'
    assert parsed(page) == {'a_total{x="p q",y="}"}': 3.0, "b": 1_000_000.0}


SAID = """
  FAILED:
    expr: "count by (alertname, severity) (count_over_time(ALERTS{alertstate=\\"firing\\"}[3600s]))", time: 59m55s,
        exp: nil
        got: {alertname="EngineDown", severity="page"} 2E+00, {alertname="ProbesFailing", severity="warning"} 1E+00
"""


def test_what_fired_is_read_from_promtool() -> None:
    """Both alerts with their severity; a failure of another check is trouble of its own."""
    both = (("EngineDown", "page"), ("ProbesFailing", "warning"))
    assert told(SAID) == (both, "")
    fired, trouble = told(
        SAID + '    expr: "count(x)", time: 59m55s,\n        exp: {} 4E+00\n        got: nil\n'
    )
    assert fired == both
    assert "count(x)" in trouble
    assert told("error: no such file")[1] == "error: no such file"


def test_a_day_passes_where_nobody_was_woken() -> None:
    """A warning is told and passes; a page, a ticket or a check that failed does not."""
    assert Day(24, 1, 1, (("ProbesFailing", "warning"),), "").passed
    assert not Day(24, 1, 1, (("EngineDown", "page"),), "").passed
    assert not Day(24, 1, 1, (("ErrorBudgetLow", "ticket"),), "").passed
    assert not Day(24, 1, 1, (), "judged nothing").passed


def test_what_one_test_says_does_not_excuse_another() -> None:
    """A warning that fired in one, and a second that could not be read: told both, and the day has not passed."""
    fired, trouble = merged([SAID, "", "pages.promtool.yaml: unexpected character"])

    assert fired == (("EngineDown", "page"), ("ProbesFailing", "warning"))
    assert trouble == "pages.promtool.yaml: unexpected character"
    assert merged(["", ""]) == ((), "")


@pytest.mark.parametrize(("last", "step"), [(355, 5), (3595, 17), (86_395, 431), (604_795, 3023)])
def test_looks_are_fine_enough_for_nine_in_ten_to_mean_it(last: int, step: int) -> None:
    """
    Six minutes, an hour, a day, a week. Nothing is judged in the first 75 s of an hour and more; what is left must be
    more than nine tenths of all looks, and four promises less than the 10,000 samples of a query.
    """
    assert look_seconds(last, 5) == step
    seen = sum(at > 75 for at in range(step, last + 1, step))
    assert seen * 4 < 10_000 and (last < 3595 or seen > 0.9 * last / step)
