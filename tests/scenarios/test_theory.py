"""How soon an alert may come: worked out by hand for the shipped slo.yaml."""

import pytest

from inferwatch.scenarios import derive
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.node_theory import NoTheory
from inferwatch.scenarios.row import Expected, History, Row
from inferwatch.scenarios.theory import Theory, crossing_seconds
from slo import spec as slo_spec


def bound(row: Row, expected: Expected, lead: float = 0.0) -> float:
    """The bound for a row on the shipped spec."""
    return Theory(derive.derived(slo_spec.load(), [row])).seconds(row, expected, lead)


def test_a_full_history_gives_burn_times_budget_over_error_ratio_times_window() -> None:
    """14.4 × 0.05 % ÷ 10 % × 3600 s = 259.2 s, whatever the rate."""
    assert crossing_seconds(0.0072, 3600, 0.1, 8, (8, 0), 0) == pytest.approx(259.2)
    assert crossing_seconds(0.0072, 3600, 0.1, 1, (1, 0), 60) == pytest.approx(259.2)


def test_a_quiet_past_is_outweighed_sooner() -> None:
    """At 1/s before and 4/s now, all bad: 4 t = 0.144 (3600 + 3 t), t = 145.3 s; 60 s at 4/s cost 7.3 s more."""
    assert crossing_seconds(0.144, 3600, 1.0, 4, (1, 0), 0) == pytest.approx(518.4 / 3.568)
    # 4 t = 0.144 (1 (3600 - 60 - t) + 4 (60 + t)) = 0.144 (3780 + 3 t)
    assert crossing_seconds(0.144, 3600, 1.0, 4, (1, 0), 60) == pytest.approx(544.32 / 3.568)


def test_a_past_that_is_partly_spent_has_less_to_go() -> None:
    """At 0.96 % before and 1 % allowed over three days: 0.04 % × 259200 s ÷ (1 - 0.0096) = 104.7 s."""
    assert crossing_seconds(0.01, 259_200, 1.0, 4, (4, 0.0096), 0) == pytest.approx(103.68 / 0.9904)


def test_what_never_crosses_has_no_bound() -> None:
    """0.5 % of errors never make 0.72 %."""
    with pytest.raises(NoTheory, match="never cross"):
        crossing_seconds(0.0072, 3600, 0.005, 4, (4, 0), 0)


def test_a_page_adds_scrape_base_window_evaluation_and_grouping() -> None:
    """259.2 s + scrape 5 s + base window 20 s + evaluation 5 s + a new group's wait of 1 s."""
    row = Row("burning", Nothing(None))
    assert bound(row, Expected("AvailabilityBurnFast", level=0.1)) == pytest.approx(290.2)


def test_the_wanted_slo_is_the_one_that_is_judged() -> None:
    """The latency promise has 1 % to spend: 14.4 × 1 % × 3600 s = 518.4 s at total failure, and 31 s."""
    row = Row("slow", Nothing(None))
    expected = Expected("LatencyBurnFast", {"sloth_slo": "time-per-output-token"})
    assert bound(row, expected) == pytest.approx(549.4)


def test_a_mean_crosses_when_enough_of_its_window_is_new() -> None:
    """From 0.75 to 0 the mean of 5 m is 0.61 after 0.14 / 0.75 × 300 s = 56 s; 5 s, 30 s, 5 m and 125 s follow."""
    row = Row("cold", Nothing(None))
    assert bound(row, Expected("PrefixCacheHitLow", level=0.0, healthy=0.75)) == pytest.approx(516.0)


def test_a_median_crosses_at_half_of_its_window() -> None:
    """150 s + scrape 5 s + slow evaluation 30 s + a group's interval of 125 s."""
    assert bound(Row("queue", Nothing(None)), Expected("WaitingRequestsHigh")) == pytest.approx(310.0)


def test_a_signal_on_its_good_side_has_no_bound() -> None:
    """A hit ratio that falls to 0.7 stays over 0.61."""
    with pytest.raises(NoTheory, match="good side"):
        bound(Row("warm", Nothing(None)), Expected("PrefixCacheHitLow", level=0.7, healthy=0.75))


def test_a_service_that_hangs_is_down_as_soon_as_the_hang_is_seen() -> None:
    """The hang's 25 s (window 20 s, scrape 5 s), evaluation 5 s, `for` 5 s, group wait 1 s."""
    row = Row("hang", Nothing(None))
    assert bound(row, Expected("ServiceDown", seen_as="EngineHung")) == pytest.approx(36.0)


def test_a_refusal_is_told_before_silence() -> None:
    """Scrape 5 s and timeout 4 s in place of scrape 5 s and base window 20 s; evaluation 5 s, `for` 5 s, wait 1 s."""
    row = Row("down", Nothing(None))
    assert bound(row, Expected("ServiceDown", refused=True)) == pytest.approx(20.0)
    assert bound(row, Expected("ServiceDown")) == pytest.approx(36.0)


def test_what_cuts_the_way_is_sent_again_after_it() -> None:
    """Within 60 s, at the next slow evaluation 30 s later, and a new group's wait of 1 s."""
    row = Row("cut", Nothing(None), stage="sentinel")
    assert bound(row, Expected("AlertsNotSent", afterwards=True)) == pytest.approx(91.0)


def test_an_alert_that_there_is_not_is_said() -> None:
    """A throughput floor without GPUs has no rule."""
    with pytest.raises(NoTheory, match="no rule ThroughputLow"):
        bound(Row("spike", Nothing(None)), Expected("ThroughputLow"))
    assert bound(Row("spike", Nothing(None), gpus=1), Expected("ThroughputLow")) == pytest.approx(
        150 + 5 + 30 + 120 + 125
    )


def test_a_history_shorter_than_the_period_is_what_the_budget_is_of() -> None:
    """16 days at 0.0448 %: 0.0002 % × 1382400 s ÷ (2 % - 0.0448 %) = 141.4 s, then the 5 m resample and the rest."""
    row = Row(
        "low",
        Nothing(None),
        slos=("availability",),
        history=History(bad_ratios={"availability": 0.000448}, days=16),
    )
    crossing = 0.000002 * 1_382_400 / (0.02 - 0.000448)
    assert bound(row, Expected("ErrorBudgetLow", level=0.02)) == pytest.approx(
        crossing + 5 + 20 + 300 + 60 + 125
    )


def test_a_page_that_joins_a_group_waits_for_its_interval() -> None:
    """ExporterDown: scrape 5 s, timeout 4 s, evaluation 5 s, `for` 15 s, then 1 s alone and 75 s in a group."""
    row = Row("lost", Nothing(None), stage="watchers")
    alone, joined = Expected("ExporterDown"), Expected("ExporterDown", joins=True)
    assert bound(row, alone) == pytest.approx(30.0)
    assert bound(row, joined) == pytest.approx(104.0)


def test_without_our_exporter_records_come_first_and_down_waits_for_the_base_window() -> None:
    """One evaluation of 5 s more; a page of a total outage: scrape and timeout, 20 s of base window, evaluation, wait."""
    slow = Expected("LatencyBurnFast", {"sloth_slo": "time-per-output-token"})
    down, plain = Row("down", Nothing(None), direct=True), Row("down", Nothing(None))

    assert bound(Row("slow", Nothing(None), direct=True), slow) == pytest.approx(549.4 + 5)
    assert bound(down, Expected("EngineDown")) == pytest.approx(bound(plain, Expected("EngineDown")) + 5 + 20)
    assert bound(down, Expected("ServiceDown")) == pytest.approx(
        bound(plain, Expected("ServiceDown")) + 5 + 20
    )
