"""Bounds of recorded faults, by hand."""

import pytest

from inferwatch.scenarios.faults import Recorded
from inferwatch.scenarios.node_theory import NoTheory, share_of, twice_seconds
from inferwatch.scenarios.row import Expected, Row
from inferwatch.scenarios.shown import Card, Core, Shown, Tenant
from inferwatch.scenarios.theory import Theory
from slo import spec as slo_spec


def bound(row: Row, alert: str) -> float:
    """Fault to delivered notification."""
    return Theory(slo_spec.load()).seconds(row, Expected(alert), 60.0)


def changes(before: Shown, after: Shown) -> Row:
    """A row of the nodes that goes from one to the other."""
    return Row("row", Recorded(after), stage="nodes", engines=0, shows=before)


def test_a_mean_of_a_mean() -> None:
    """Half of the way after one window, an eighth after half of one, all after two."""
    assert twice_seconds(300, 0.5) == 300
    assert twice_seconds(300, 0.125) == 150
    assert twice_seconds(300, 1.0) == 600


def test_a_level_that_never_crosses_has_no_bound() -> None:
    """From 0.1 to 0.3 there is no 0.5, and what is over it already is no fault."""
    assert share_of(0.2, 0.1, 0.3) == pytest.approx(0.5)
    with pytest.raises(NoTheory, match=r"never crosses 0\.5"):
        share_of(0.5, 0.1, 0.3)
    with pytest.raises(NoTheory):
        share_of(0.05, 0.1, 0.3)


def test_a_hot_card() -> None:
    """A tenth of 300 s, two scrapes, an evaluation of 30 s, held 120 s, a group's interval of 125 s."""
    row = changes(Shown(card=Card()), Shown(card=Card(clock_events=0x40)))
    assert bound(row, "GpuThermalThrottled") == 30 + 10 + 30 + 120 + 125


def test_a_tenant_without_quota() -> None:
    """From nothing to a half crosses a tenth after 60 s; then the agent's 5 s, a scrape, and as above."""
    row = changes(Shown(tenant=Tenant()), Shown(tenant=Tenant(throttled=0.5)))
    assert bound(row, "TenantCpuThrottled") == pytest.approx(60 + 10 + 30 + 120 + 125)


def test_a_busy_core_waits_for_the_later_of_two() -> None:
    """0.62 to 0.87 crosses 0.82 after 0.8 × 300 s; the GPU, 0.4 to 0.0, is under 0.2 after half of them."""
    row = changes(
        Shown(card=Card(active=0.4), core=Core(0.62)), Shown(card=Card(active=0.0), core=Core(0.87))
    )
    assert bound(row, "EngineCpuBound") == pytest.approx(240 + 10 + 30 + 120 + 125)


def test_an_alert_needs_what_it_is_about() -> None:
    """A tenant is no engine core."""
    with pytest.raises(NoTheory, match="no engine core"):
        bound(changes(Shown(tenant=Tenant()), Shown(tenant=Tenant(1.0))), "NoisyNeighbour")
