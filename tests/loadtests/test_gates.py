"""Gates on records made by hand: what passes and what fails; `test_trust` has what makes a run void."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from loadtests.gates import judge
from loadtests.plan import Arrival, closed
from loadtests.shapes import ramp
from loadtests.verdict import GateExit, Verdict, verdict_json
from slo.delivery import Gate
from tests.loadtests.made import SPEC, pairs, record, run, steady, swing


def _codes(verdict: Verdict) -> dict[str, GateExit]:
    return {check.name: check.outcome for check in verdict.checks}


def test_a_good_run_passes_and_throughput_without_baseline_is_said_to_be_unjudged(tmp_path: Path) -> None:
    """300 requests at 100 ms, none failed: exit 0."""
    verdict = judge([steady(tmp_path, [record(i / 30) for i in range(300)])], None, SPEC)

    assert verdict.code is GateExit.PASSED
    assert "not judged" in next(check.detail for check in verdict.checks if check.name == "throughput")
    assert verdict_json(verdict)["exit_code"] == 0


@pytest.mark.parametrize(("slow", "code"), [(15, GateExit.PASSED), (16, GateExit.FAILED)])
def test_the_latency_boundary(tmp_path: Path, slow: int, code: GateExit) -> None:
    """P95 of 300 samples is the 285th: with 15 over 300 ms it is 100 ms, with 16 it is 301 ms."""
    records = [record(i / 30, 0.301 if i < slow else 0.1) for i in range(300)]
    verdict = judge([steady(tmp_path, records)], None, SPEC)

    assert verdict.code is code
    assert _codes(verdict)["latency"] is code


@pytest.mark.parametrize(("failed", "code"), [(2, GateExit.PASSED), (3, GateExit.FAILED)])
def test_the_error_boundary(tmp_path: Path, failed: int, code: GateExit) -> None:
    """2 of 400 requests are 0.5 %, the bound; 3 are over it. Aborts count on neither side."""
    records = [record(i / 41, outcome="error" if i < failed else "ok") for i in range(400)]
    records += [record(i / 41, outcome="aborted") for i in range(10)]
    verdict = judge([steady(tmp_path, records)], None, SPEC)

    assert _codes(verdict)["errors"] is code


def test_unanswered_requests_are_worse_than_any(tmp_path: Path) -> None:
    """A server that stops answering 6 % of the requests fails the P95, however fast the others were."""
    records = [record(i / 30) for i in range(282)]
    records += [record(9.5, outcome="unfinished", first_token_s=None) for _ in range(18)]
    verdict = judge([steady(tmp_path, records)], None, SPEC)

    assert verdict.code is GateExit.FAILED
    assert "no answer" in next(check.detail for check in verdict.checks if check.name == "latency")


def test_streams_that_hang_after_the_first_token_are_errors(tmp_path: Path) -> None:
    """Half of 600 never end: their first token was quick, and nobody got an answer."""
    hung = {"outcome": "unfinished", "last_token_s": 60.0, "end_s": 70.0}
    records = [record(i / 60, **(hung if i % 2 else {})) for i in range(600)]
    verdict = judge([steady(tmp_path, records)], None, SPEC)

    assert _codes(verdict)["latency"] is GateExit.PASSED
    assert _codes(verdict)["errors"] is GateExit.FAILED
    errors = next(check for check in verdict.checks if check.name == "errors")
    assert errors.value == 0.5
    assert "300 had no end 60 s (drain_s) after" in errors.detail


@pytest.mark.parametrize(("open_ends", "code"), [(2, GateExit.PASSED), (3, GateExit.FAILED)])
def test_the_boundary_of_answers_without_an_end(tmp_path: Path, open_ends: int, code: GateExit) -> None:
    """2 of 400 are 0.5 %, the bound, far too few to move the P95; 3 are over it."""
    records = [record(i / 40) for i in range(400 - open_ends)]
    records += [record(9.5, outcome="unfinished", first_token_s=None) for _ in range(open_ends)]

    assert judge([steady(tmp_path, records)], None, SPEC).code is code


def _gated(**gate: Any) -> Any:
    return SPEC.model_copy(update={"gates": (Gate.model_validate({"id": "one", **gate}),)})


def test_gates_on_what_users_wait_for(tmp_path: Path) -> None:
    """4 s to connect stand in no time to first token; gaps are each one sample, 9 a request."""
    slow = [
        record(i / 30 + 4, scheduled_s=i / 30, started_s=i / 30, connected_s=i / 30 + 4) for i in range(300)
    ]
    halting = [record(i / 30, chunk_gaps_ns=(*(int(1e7),) * 8, int(2e9))) for i in range(300)]
    waited = _gated(sli="latency_from_schedule", quantile=0.95, max_seconds=2)
    gaps = _gated(sli="inter_chunk_gap", quantile=0.95, max_seconds=1)
    few = judge([steady(tmp_path, halting[:150])], None, gaps)

    assert judge([steady(tmp_path, slow)], None, SPEC).code is GateExit.PASSED
    assert judge([steady(tmp_path, slow)], None, waited).code is GateExit.FAILED
    assert judge([steady(tmp_path, halting)], None, gaps).code is GateExit.FAILED
    assert few.code is GateExit.TOO_FEW_SAMPLES  # 1,350 gaps, of 150 requests


def test_a_gate_on_one_lane(tmp_path: Path) -> None:
    """The urgent quarter is slow, which moves no P50 of all; a lane that nobody used has no samples."""
    records = [
        record(i / 100, *((1.0,) if i % 4 == 0 else ()), lane="urgent" if i % 4 == 0 else "batch")
        for i in range(1000)
    ]
    runs = [steady(tmp_path, records)]
    bound = {"sli": "time_to_first_token", "quantile": 0.5, "max_seconds": 0.3}
    urgent = judge(runs, None, _gated(**bound, lane="urgent"))

    assert judge(runs, None, _gated(**bound)).code is GateExit.PASSED
    assert urgent.code is GateExit.FAILED
    assert "of lane urgent: 1000.0 ms" in urgent.checks[0].detail
    assert judge(runs, None, _gated(**bound, lane="urgnt")).code is GateExit.TOO_FEW_SAMPLES


@pytest.mark.parametrize(
    ("speeds", "code"),
    [
        ([1.0, 0.998, 1.003, 1.001], GateExit.PASSED),
        ([0.99, 0.988, 0.993, 0.991], GateExit.PASSED),
        ([0.90, 0.898, 0.903, 0.901], GateExit.FAILED),
        ([1.0, 0.85, 1.1, 0.98], GateExit.INCONCLUSIVE),
        ([1.0, 1.0, 1.0], GateExit.TOO_FEW_SAMPLES),
    ],
)
def test_throughput_inpairs(tmp_path: Path, speeds: list[float], code: GateExit) -> None:
    """Level and 1 % slower pass, 10 % slower fails, noise too large for the pairs is told apart, three are too few."""
    verdict = pairs(tmp_path, speeds)

    assert _codes(verdict)["throughput"] is code
    assert verdict.code is code
    if code is GateExit.INCONCLUSIVE:
        assert "needs" in next(check.detail for check in verdict.checks if check.name == "throughput")


def test_open_loop_throughput_is_not_judged(tmp_path: Path) -> None:
    """Arrivals of an open loop say nothing about what a server could do."""
    records = [record(i / 30) for i in range(300)]
    runs = [steady(tmp_path / "a", records)]
    verdict = judge(runs, [steady(tmp_path / "b", records)], SPEC)

    assert verdict.code is GateExit.NOT_JUDGEABLE


@pytest.mark.parametrize(
    "arrival", [closed(90, 20, think_s=0.1), Arrival(kind="closed", segments=ramp(10, 90, 20))]
)
def test_a_closed_loop_that_does_not_saturate_is_not_judged(tmp_path: Path, arrival: Arrival) -> None:
    """Clients that think, or whose number changes, set the throughput themselves."""
    records = [record(i / 100) for i in range(2000)]
    runs, base = (
        [run(tmp_path / f"{who}{i}", records, arrival, seed=i) for i in range(4)] for who in ("c", "b")
    )

    assert _codes(judge(runs, base, SPEC))["throughput"] is GateExit.NOT_JUDGEABLE


def test_a_build_that_hangs_in_one_round_fails(tmp_path: Path) -> None:
    """90 unanswered of 7090 move no P95, and are 1.3 % errors; 10 s of a round's 20 make 1 - 0.5^(1/4) = 16 % loss."""
    runs = [swing(tmp_path / f"c{i}", 1.0, i) for i in range(4)]
    base = [swing(tmp_path / f"b{i}", 1.0, i) for i in range(4)]
    cut = [record(10, outcome="unfinished", first_token_s=None, output_tokens=None, chunks=0)] * 90
    runs[3].__dict__["records"] = (*runs[3].records[:1000], *cut)
    verdict = judge(runs, base, SPEC)

    assert _codes(verdict)["latency"] is GateExit.PASSED
    assert _codes(verdict)["errors"] is GateExit.FAILED
    assert verdict.code is GateExit.FAILED
    throughput = next(check for check in verdict.checks if check.name == "throughput")
    assert throughput.value == pytest.approx(1 - 0.5**0.25, abs=0.02)


def test_a_round_without_tokens_is_a_loss_and_not_a_missing_pair(tmp_path: Path) -> None:
    """The fifth round of the candidate gave nothing; four level pairs are left, and must not pass without it."""
    runs = [swing(tmp_path / f"c{i}", 1.0, i) for i in range(5)]
    base = [swing(tmp_path / f"b{i}", 1.0, i) for i in range(5)]
    cut = [record(0, outcome="unfinished", first_token_s=None, output_tokens=None, chunks=0)] * 90
    runs[4].__dict__["records"] = tuple(cut)

    assert _codes(judge(runs, base, SPEC))["throughput"] is GateExit.FAILED
    assert _codes(judge(base, runs, SPEC))["throughput"] is GateExit.PASSED


def test_a_spec_without_gates_passes_nothing(tmp_path: Path) -> None:
    """Nothing was held against anything, which is no pass."""
    runs = [steady(tmp_path, [record(i / 30) for i in range(300)])]

    assert judge(runs, None, SPEC.model_copy(update={"gates": ()})).code is GateExit.NO_DATA


def test_a_stored_baseline_is_no_pair(tmp_path: Path) -> None:
    """Measured before the first round of the run: throughput is not judged, latency and errors are."""
    runs = [swing(tmp_path / f"c{i}", 1.0, i) for i in range(4)]
    base = [
        dataclasses.replace(swing(tmp_path / f"b{i}", 1.0, i), began_s=-1e6 + i, ended_s=-1e6 + i + 1)
        for i in range(4)
    ]
    for mine, theirs in zip(runs, base, strict=True):
        theirs.__dict__.update(records=mine.records, health=mine.health)
    verdict = judge(base, runs, SPEC)

    assert _codes(verdict)["throughput"] is GateExit.NOT_JUDGEABLE
    assert _codes(verdict)["latency"] is _codes(verdict)["errors"] is GateExit.PASSED
    assert "--against" in next(check.detail for check in verdict.checks if check.name == "throughput")


def test_a_broken_bound_is_told_before_what_was_too_little_to_judge(tmp_path: Path) -> None:
    """270 of 300 failed: 30 answers are too few for a P95, and 90 % errors are no matter of samples."""
    records = [record(i / 30, outcome="ok" if i % 10 == 0 else "error") for i in range(300)]
    verdict = judge([steady(tmp_path, records)], None, SPEC)

    assert _codes(verdict)["latency"] is GateExit.TOO_FEW_SAMPLES
    assert verdict.code is GateExit.FAILED
