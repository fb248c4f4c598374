"""The table of the matrix: every alert stands in it, and every row can run."""

from pathlib import Path

import click
import pytest

from alerts.registry import all_alerts
from inferwatch.commands.scenarios import chosen
from inferwatch.scenarios import derive
from inferwatch.scenarios.faults import Sim
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.rows import ROWS
from inferwatch.scenarios.stages import served
from inferwatch.scenarios.theory import Theory
from sim import scenarios as sim_scenarios
from slo import spec as slo_spec
from slo.names import alerts

RUNBOOKS = Path(__file__).parents[2] / "alerts" / "runbooks"
ROWS_OF = {stage: [row for row in ROWS if row.stage == stage] for stage in {row.stage for row in ROWS}}
SPECS = {stage: derive.staged(slo_spec.load(), served(stage, rows), rows) for stage, rows in ROWS_OF.items()}


def test_every_alert_stands_in_a_row() -> None:
    """Whatever rules generate (of a service whose GPUs are known), and no name beside them, must come in one."""
    generated = {alert.name for alert in all_alerts(SPECS["fleet"])}
    ours = {value for name, value in vars(alerts).items() if name.isupper()}
    shown = {expected.alert for row in ROWS for expected in row.fires}

    assert generated == ours
    assert ours - shown == set()
    assert shown - ours == set()


def test_every_runbook_names_the_rows_of_its_alert() -> None:
    """Its last sentence: which faults of the matrix were seen to bring the alert."""
    rows: dict[str, list[str]] = {}
    for row in ROWS:
        for expected in row.fires:
            rows.setdefault(expected.alert, []).append(row.name)
    for alert, names in rows.items():
        told = (RUNBOOKS / f"{alert}.md").read_text(encoding="utf-8")
        wanted = ", ".join(f"`{name}`" for name in dict.fromkeys(names))
        assert told.endswith(f"In the matrix: {wanted}.\n"), alert


def test_every_scenario_of_the_simulated_engine_is_used() -> None:
    """Each has a row; healthy is what the others are switched back to, and a row without a fault."""
    used = {row.fault.scenario for row in ROWS if isinstance(row.fault, Sim)}

    assert {scenario.name for scenario in sim_scenarios.SCENARIOS} - used == {"healthy"}


@pytest.mark.parametrize("row", [row for row in ROWS if isinstance(row.fault, Sim)], ids=lambda row: row.name)
def test_the_engine_takes_the_parameters(row: Row) -> None:
    """The scenario and its parameters are ones that the simulated engine knows."""
    assert isinstance(row.fault, Sim)
    sim_scenarios.find(row.fault.scenario).values(dict(row.fault.params))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_theory_bounds_every_expected_alert(row: Row) -> None:
    """Each has a bound that fits into a quarter of an hour together with what must come before it."""
    theory = Theory(SPECS[row.stage])
    for expected in row.fires:
        before = max(60.0, row.lead_seconds)
        assert 5 < theory.seconds(row, expected, 60.0) < 900 - before - 30, expected.alert


def test_names_are_unique_and_order_is_possible() -> None:
    """Rows that wait for another one wait for one of their own stage, above them in the table."""
    names = [row.name for row in ROWS]
    assert len(set(names)) == len(names)
    for number, row in enumerate(ROWS):
        assert all((name, row.stage) in [(r.name, r.stage) for r in ROWS[:number]] for name in row.after)


def test_what_cannot_be_shown_says_why() -> None:
    """A recovery that is not awaited has a reason beside it."""
    for row in ROWS:
        for expected in row.fires:
            assert (expected.recovers_seconds is None) == bool(expected.why_not_shown), row.name


def test_ci_watches_a_healthy_service_for_ten_minutes() -> None:
    """The reduced set has a row without a fault, in which nothing at all may come."""
    (healthy,) = [row for row in ROWS if row.ci and row.quiet]
    assert healthy.fault.mends_itself_seconds == 600
    assert healthy.fires == ()


def test_a_choice_of_nothing_is_refused() -> None:
    """A row that is not in CI's set, asked for with --ci: a run of no row would be as expected, and show nothing."""
    outside = next(row.name for row in ROWS if not row.ci)

    with pytest.raises(click.UsageError, match=f"--only {outside} --ci: no row"):
        chosen((outside,), (), True)
    with pytest.raises(click.UsageError, match="--only gpu-lost --stage rag: no row"):
        chosen(("gpu-lost",), ("rag",), False)
    assert [row.name for row in chosen((outside,), (), False)] == [outside]


def test_stages_can_be_chosen() -> None:
    """Those of the engines and the stack itself: each row of theirs, and no other."""
    names = {row.name for row in chosen((), ("fleet", "watchers", "sentinel"), False)}

    assert {"healthy", "kv-full", "rule-broken", "prometheus-killed"} <= names
    assert not {"gpu-lost", "rag-down", "spans-lost", "drift-alone"} & names
