"""Searches for the highest level that keeps the promise: what they find, and when they say that they do not know."""

from pathlib import Path
from typing import Any

import pytest

from loadtests import sweep as sweep_module
from loadtests.plan import open_loop, parse_plan
from loadtests.sweep import run_sweep, search_results
from loadtests.sweepplan import enough_seconds, smallest_share
from loadtests.verdict import Check, GateExit, Verdict
from slo.delivery import Gate

from .sweeppoints import PLAN, SPEC, a_sweep, measured_by, ten_a_slot


def test_bisection_finds_the_highest_rate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """True capacities 10 and 20: found from below within 5 %, in few runs."""
    measured_by(monkeypatch, ten_a_slot)
    search = {"low": 1, "high": 100, "tolerance": 0.05}
    points = run_sweep(a_sweep(axes={"slots": [1, 2]}, search=search), tmp_path, SPEC, lambda _: None)
    best = search_results(points, "rate")

    assert set(best) == {"slots=1", "slots=2"}
    assert 10 / 1.05 <= (best["slots=1"].kept or 0) <= 10 < (best["slots=1"].broken or 0) <= 10 * 1.05
    assert 20 / 1.05 <= (best["slots=2"].kept or 0) <= 20 < (best["slots=2"].broken or 0) <= 20 * 1.05
    assert {one.void for one in best.values()} == {None}
    assert len(points) <= 2 * 9


@pytest.mark.parametrize(
    ("low", "high", "runs", "said"),
    [
        (20, 40, 1, "rate 20, the lowest tried, breaks the promise"),
        (1, 8, 2, "rate up to 8 keeps the promise; nothing above was tried"),
    ],
)
def test_search_ends_at_once_when_the_range_holds_no_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, low: float, high: float, runs: int, said: str
) -> None:
    """When even the lowest rate fails, or the highest is fine, there is nothing to bisect."""
    measured_by(monkeypatch, ten_a_slot)
    points = run_sweep(a_sweep(search={"low": low, "high": high}), tmp_path, SPEC, lambda _: None)

    assert len(points) == runs
    assert search_results(points, "rate")["as planned"].text("rate") == said


@pytest.mark.parametrize(
    ("codes", "rates", "said"),
    [
        (
            {100: GateExit.TOO_FEW_SAMPLES},
            [1],
            "unknown: too few samples at rate 1 (too_few_samples for a reason)",
        ),
        (
            {10: GateExit.PASSED, 100: GateExit.CLIENT_SATURATED},
            [1, 100],
            "rate up to 1 keeps the promise; unknown above: client saturated at rate 100 "
            "(client_saturated for a reason)",
        ),
        (
            {5: GateExit.PASSED, 20: GateExit.RATE_NOT_REACHED, 100: GateExit.FAILED},
            [1, 100, 10],
            "rate up to 1 keeps the promise; unknown above: rate not reached at rate 10 "
            "(rate_not_reached for a reason)",
        ),
        ({100: GateExit.NO_DATA}, [1], "unknown: no data at rate 1 (no_data for a reason)"),
    ],
)
def test_a_measurement_that_tells_nothing_is_no_broken_promise(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    codes: dict[float, GateExit],
    rates: list[float],
    said: str,
) -> None:
    """The search stops there and names the code, instead of looking for the limit of the client below it."""
    measured_by(monkeypatch, lambda point: next(codes[rate] for rate in codes if point["rate"] <= rate))
    points = run_sweep(a_sweep(search={"low": 1, "high": 100}), tmp_path, SPEC, lambda _: None)

    assert [point.settings["rate"] for point in points] == pytest.approx(rates)
    assert search_results(points, "rate")["as planned"].text("rate") == said


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((GateExit.TOO_FEW_SAMPLES, GateExit.FAILED), GateExit.FAILED),
        ((GateExit.TOO_FEW_SAMPLES, GateExit.PASSED), GateExit.TOO_FEW_SAMPLES),
        ((GateExit.CLIENT_SATURATED, GateExit.FAILED), GateExit.CLIENT_SATURATED),
        ((GateExit.PASSED, GateExit.PASSED), GateExit.PASSED),
    ],
)
def test_few_answers_because_most_failed_is_a_broken_promise(
    monkeypatch: pytest.MonkeyPatch,
    server: Any,
    tmp_path: Path,
    outcomes: tuple[GateExit, ...],
    code: GateExit,
) -> None:
    """Of 300 requests 270 fail: 30 are too few to time, and the errors are over their bound for sure."""
    checks = tuple(Check(f"gate{n}", one, None, None, f"detail {n}") for n, one in enumerate(outcomes))
    monkeypatch.setattr(sweep_module, "judge", lambda *_: Verdict(checks))
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": open_loop(1, 1), "output_tokens": 1})
    (point,) = run_sweep(a_sweep(plan=plan, seconds=0.5, axes={"rate": [4]}), tmp_path, SPEC, lambda _: None)

    assert point.code is code
    assert point.why == tuple(
        f"gate{n}: detail {n}" for n, one in enumerate(outcomes) if one is not GateExit.PASSED
    )


@pytest.mark.parametrize(
    ("changes", "rate", "expected"),
    [
        ({}, 1, 247.2),  # m - 3 √m = 200 at √m = (3 + √809)/2 = 15.722
        ({}, 100, 30),  # 3,000 are many more than 200
        ({}, 0.5, 494.3),
        ({"process": "constant"}, 1, 247.2),  # comes evenly, but an answer in 200 may fail
        ({"process": "gamma", "burstiness": 0.25}, 1, 304.7),  # variance four times the mean: m - 6 √m = 200
    ],
)
def test_a_low_rate_is_tried_long_enough(changes: dict[str, Any], rate: float, expected: float) -> None:
    """200 samples must come but for the one time in a thousand that is three standard deviations off."""
    arrival = open_loop(1, 1).model_copy(update=changes)
    plan = PLAN.model_copy(update={"arrival": arrival})

    assert enough_seconds(plan, rate, 30, 200) == pytest.approx(expected, abs=0.1)


def test_requests_that_hang_up_are_no_samples() -> None:
    """Half of the requests are aborted, so twice as many are sent; when all are, no time is long enough."""
    half, all_of_them = (PLAN.model_copy(update={"abort_share": share}) for share in (0.5, 1.0))

    assert enough_seconds(half, 1, 30, 200) == pytest.approx(494.3, abs=0.1)
    assert enough_seconds(all_of_them, 1, 30, 200) == 30


def test_a_search_runs_its_low_rates_longer_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Rate 1 for 247 s, rate 100 for the 30 s asked for; users are not known to answer at any rate."""
    said: list[str] = []
    measured = measured_by(monkeypatch, lambda _: GateExit.PASSED)
    run_sweep(a_sweep(seconds=30, search={"low": 1, "high": 100}), tmp_path, SPEC, said.append)
    run_sweep(
        a_sweep(seconds=30, search={"axis": "users", "low": 1, "high": 100}), tmp_path, SPEC, said.append
    )

    assert [seconds for _, seconds in measured] == pytest.approx([247.2, 30, 30, 30], abs=0.1)
    assert [line for line in said if "200" in line] == ["rate=1: 247 s, so that 200 samples can come"]


def test_a_gate_on_a_rare_lane_needs_a_longer_run() -> None:
    """A tenth of the requests is urgent and a quarter of one tenant: a fortieth is judged by the gate on both."""
    lanes = [{"name": "urgent", "share": 1}, {"name": "batch", "share": 9}]
    tenants = [{"name": "a", "share": 1}, {"name": "b", "share": 3}]
    plan = parse_plan({**PLAN.model_dump(), "lanes": lanes, "tenants": tenants})
    bound = {"id": "one", "sli": "time_to_first_token", "quantile": 0.95, "max_seconds": 0.3}
    gates = [
        Gate.model_validate({**bound, **of})
        for of in ({}, {"lane": "urgent"}, {"lane": "urgent", "tenant": "a"}, {"lane": "nobody's"})
    ]

    assert smallest_share(plan, gates[:1]) == 1.0
    assert smallest_share(plan, gates[:2]) == pytest.approx(0.1)
    assert smallest_share(plan, gates) == pytest.approx(0.025)
