"""How soon theory allows a notification, added up by hand from slo.yaml as it stands."""

import pytest

from alerts.registry import all_alerts
from alerts.rule import Alert
from alerts.theory import detect_seconds, theory
from slo import spec as slo_spec

SPEC = slo_spec.load()


def alert(name: str, slo: str = "") -> Alert:
    """The rule of that name, of one SLO where it has several."""
    return next(a for a in all_alerts(SPEC) if a.name == name and slo in a.labels.get("sloth_slo", ""))


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        # silent: scrape 5 + base window 20 (the canary's 10 + 8 is less), evaluation 5, for 5, group wait 1
        ("EngineDown", 36),
        ("ServiceDown", 36),
        # scrape 5 + window 20, evaluation 5, group wait 1
        ("EngineHung", 31),
        # scrape 5 + half of the 30 s window, evaluation 5, group wait 1
        ("RequestsFailing", 26),
        # scrape 5 + timeout 4, evaluation 5, for 60, group wait 1
        ("EngineAsleep", 75),
        # 30 s without success + scrape 5, evaluation 5, for 15, group wait 1
        ("CanaryFailing", 56),
    ],
)
def test_states(name: str, seconds: float) -> None:
    """Detection, one evaluation, `for`, grouping."""
    assert theory(SPEC, alert(name)) == seconds


def test_a_refusal_is_seen_before_silence() -> None:
    """Scrape 5 + timeout 4, where a silent engine takes scrape 5 + base window 20."""
    assert detect_seconds(SPEC, alert("EngineDown"), refused=True) == 9
    assert detect_seconds(SPEC, alert("EngineDown")) == 25
    # and evaluation 5, for 5, group wait 1
    assert theory(SPEC, alert("EngineDown"), refused=True) == 20


def test_the_promised_notifications_fit_into_45_s() -> None:
    """Engine down, hang under load, total errors."""
    limits = [theory(SPEC, alert(name)) for name in ("EngineDown", "EngineHung", "RequestsFailing")]

    assert all(limit is not None and limit <= 45 for limit in limits)


def test_burn_rates() -> None:
    """0.72 % of an hour is 25.92 s of total failure; then scrape 5, base window 20, evaluation 5, group wait 1."""
    assert theory(SPEC, alert("AvailabilityBurnFast")) == pytest.approx(25.92 + 31)
    # half of the requests: twice as long
    assert theory(SPEC, alert("AvailabilityBurnFast"), 0.5) == pytest.approx(51.84 + 31)
    # 14.4 % of an hour for a promise of 99 %: 518.4 s
    assert theory(SPEC, alert("LatencyBurnFast", "request-latency")) == pytest.approx(518.4 + 31)


def test_what_never_fires_has_no_bound() -> None:
    """5 % of slow requests are under 6 x 1 %, the lower of the page limits."""
    assert theory(SPEC, alert("LatencyBurnFast", "request-latency"), 0.05) is None
    assert theory(SPEC, alert("WaitingRequestsHigh")) is None
