"""Gates on records made by hand: what passes, what fails, and each way of failing closed with its own code."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from loadtests import identity
from loadtests.gates import GateExit, Verdict, judge, verdict_json
from loadtests.plan import Arrival, closed, open_loop, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.run import LoadResult
from slo import spec as slo_spec

SPEC = slo_spec.load()
CALM = ({"cpu_ratio": 0.2, "lag_s": [0.001] * 20, "seconds": 1.0},)


def _record(at: float, ttft: float = 0.1, **changes: Any) -> RequestRecord:
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
    values |= {"worker": 0, "seq": 0, "attempt": 0, "endpoint": "chat", "stream": True, "trace_id": "t"}
    values |= {
        "scheduled_s": at,
        "started_s": at,
        "sent_s": at,
        "first_byte_s": at,
        "first_token_s": at + ttft,
    }
    values |= {"last_token_s": at + 0.9, "end_s": at + 0.9, "wall_offset_s": 0.0, "clock": "kernel"}
    values |= {"outcome": "ok", "done_seen": True, "will_retry": False, "output_tokens": 10, "chunks": 10}
    values |= {"tokens_source": "server", "bytes_in": 1, "chunk_gaps_ns": (int((0.9 - ttft) / 9 * 1e9),) * 9}
    return from_mapping({**values, **changes})


def _run(
    folder: Path,
    records: list[RequestRecord],
    arrival: Arrival,
    *,
    seed: int = 0,
    health: Any = CALM,
    **known: Any,
) -> LoadResult:
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": arrival, "random_seed": seed})
    identity.save({"engine": "vllm", "engine_version": "1", "model": "m", "flags": {}, **known}, folder)
    result = LoadResult(folder, plan, 0.0, 9.0, 0, False)
    result.__dict__.update(records=tuple(records), health=health)
    return result


def _open(folder: Path, records: list[RequestRecord], **kwargs: Any) -> LoadResult:
    return _run(folder, records, open_loop(len(records) / 10, 10), **kwargs)


def _swing(folder: Path, speed: float, number: int, **kwargs: Any) -> LoadResult:
    """A closed loop that makes about 1000·*speed* tokens a second for 20 s."""
    count = int(2000 * speed)
    return _run(
        folder, [_record(20 * i / count) for i in range(count)], closed(90, 20), seed=number, **kwargs
    )


def _codes(verdict: Verdict) -> dict[str, GateExit]:
    return {check.name: check.outcome for check in verdict.checks}


def test_a_good_run_passes_and_throughput_without_baseline_is_said_to_be_unjudged(tmp_path: Path) -> None:
    """300 requests at 100 ms, none failed: exit 0."""
    verdict = judge([_open(tmp_path, [_record(i / 30) for i in range(300)])], None, SPEC)

    assert verdict.code is GateExit.PASSED
    assert "not judged" in next(check.detail for check in verdict.checks if check.name == "throughput")
    assert verdict_json(verdict)["exit_code"] == 0


@pytest.mark.parametrize(("slow", "code"), [(15, GateExit.PASSED), (16, GateExit.FAILED)])
def test_the_latency_boundary(tmp_path: Path, slow: int, code: GateExit) -> None:
    """P95 of 300 samples is the 285th: with 15 over 300 ms it is 100 ms, with 16 it is 301 ms."""
    records = [_record(i / 30, 0.301 if i < slow else 0.1) for i in range(300)]
    verdict = judge([_open(tmp_path, records)], None, SPEC)

    assert verdict.code is code
    assert _codes(verdict)["latency"] is code


@pytest.mark.parametrize(("failed", "code"), [(2, GateExit.PASSED), (3, GateExit.FAILED)])
def test_the_error_boundary(tmp_path: Path, failed: int, code: GateExit) -> None:
    """2 of 400 requests are 0.5 %, the bound; 3 are over it. Aborts count on neither side."""
    records = [_record(i / 41, outcome="error" if i < failed else "ok") for i in range(400)]
    records += [_record(i / 41, outcome="aborted") for i in range(10)]
    verdict = judge([_open(tmp_path, records)], None, SPEC)

    assert _codes(verdict)["errors"] is code


def test_unanswered_requests_are_worse_than_any(tmp_path: Path) -> None:
    """A server that stops answering 6 % of the requests fails the P95, however fast the others were."""
    records = [_record(i / 30) for i in range(282)]
    records += [_record(9.5, outcome="unfinished", first_token_s=None) for _ in range(18)]
    verdict = judge([_open(tmp_path, records)], None, SPEC)

    assert verdict.code is GateExit.FAILED
    assert "no answer" in next(check.detail for check in verdict.checks if check.name == "latency")


def test_ways_of_failing_closed(tmp_path: Path) -> None:
    """No data, too few samples, a rate not reached, a saturated or unsampled client: each its own code."""
    good = [_record(i / 30) for i in range(300)]
    hot = ({"cpu_ratio": 0.95, "lag_s": [0.001], "seconds": 1.0},)
    late = [_record(i / 30, sent_s=i / 15) for i in range(300)]
    found = [
        judge([], None, SPEC).code,
        judge([_open(tmp_path, [])], None, SPEC).code,
        judge([_open(tmp_path, good, health=())], None, SPEC).code,
        judge([_open(tmp_path, good[:150])], None, SPEC).code,
        judge([_open(tmp_path, late)], None, SPEC).code,
        judge([_open(tmp_path, good, health=hot)], None, SPEC).code,
    ]

    assert found == [
        *[GateExit.NO_DATA] * 3,
        GateExit.TOO_FEW_SAMPLES,
        GateExit.RATE_NOT_REACHED,
        GateExit.CLIENT_SATURATED,
    ]
    assert len({int(code) for code in GateExit}) == len(GateExit)


def _pairs(tmp_path: Path, speeds: list[float], **kwargs: Any) -> Verdict:
    runs = [_swing(tmp_path / f"c{i}", speed, i, **kwargs) for i, speed in enumerate(speeds)]
    base = [_swing(tmp_path / f"b{i}", 1.0, i) for i in range(len(speeds))]
    return judge(runs, base, SPEC)


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
def test_throughput_in_pairs(tmp_path: Path, speeds: list[float], code: GateExit) -> None:
    """Level and 1 % slower pass, 10 % slower fails, noise too large for the pairs is told apart, three are too few."""
    verdict = _pairs(tmp_path, speeds)

    assert _codes(verdict)["throughput"] is code
    assert verdict.code is code
    if code is GateExit.INCONCLUSIVE:
        assert "needs" in next(check.detail for check in verdict.checks if check.name == "throughput")


def test_open_loop_throughput_is_not_judged(tmp_path: Path) -> None:
    """Arrivals of an open loop say nothing about what a server could do."""
    records = [_record(i / 30) for i in range(300)]
    runs = [_open(tmp_path / "a", records)]
    verdict = judge(runs, [_open(tmp_path / "b", records)], SPEC)

    assert verdict.code is GateExit.NOT_JUDGEABLE


def test_unlike_things_are_not_compared(tmp_path: Path) -> None:
    """Another engine, other flags, other seeds, no identity: refused; another version is what gates are for."""
    other = _pairs(tmp_path / "1", [1.0] * 4, engine="sglang")
    flags = _pairs(tmp_path / "2", [1.0] * 4, flags={"block_size": "32"})
    newer = _pairs(tmp_path / "3", [1.0, 1.001, 0.999, 1.0], engine_version="2")
    runs = [_swing(tmp_path / f"4c{i}", 1.0, i) for i in range(4)]
    base = [_swing(tmp_path / f"4b{i}", 1.0, i + 1) for i in range(4)]
    seeds = judge(runs, base, SPEC)
    (runs[0].folder / identity.IDENTITY_FILE).unlink()
    nameless = judge(runs, [_swing(tmp_path / f"5b{i}", 1.0, i) for i in range(4)], SPEC)

    assert [v.code for v in (other, flags, seeds, nameless)] == [GateExit.UNLIKE_BASELINE] * 4
    assert newer.code is GateExit.PASSED
    assert any("engine: 'sglang' against 'vllm'" in check.detail for check in other.checks)


def test_a_build_that_hangs_in_one_round_fails(tmp_path: Path) -> None:
    """90 unanswered of 8000 move no P95 and are no errors; the round's 10 s of 20 s make 1 - 0.5^(1/4) = 16 % loss."""
    runs = [_swing(tmp_path / f"c{i}", 1.0, i) for i in range(4)]
    base = [_swing(tmp_path / f"b{i}", 1.0, i) for i in range(4)]
    cut = [_record(10, outcome="unfinished", first_token_s=None, output_tokens=None, chunks=0)] * 90
    runs[3].__dict__["records"] = (*runs[3].records[:1000], *cut)
    verdict = judge(runs, base, SPEC)

    assert _codes(verdict)["latency"] is GateExit.PASSED
    assert verdict.code is GateExit.FAILED
    throughput = next(check for check in verdict.checks if check.name == "throughput")
    assert throughput.value == pytest.approx(1 - 0.5**0.25, abs=0.02)


def test_a_round_without_tokens_is_a_loss_and_not_a_missing_pair(tmp_path: Path) -> None:
    """The fifth round of the candidate gave nothing; four level pairs are left, and must not pass without it."""
    runs = [_swing(tmp_path / f"c{i}", 1.0, i) for i in range(5)]
    base = [_swing(tmp_path / f"b{i}", 1.0, i) for i in range(5)]
    cut = [_record(0, outcome="unfinished", first_token_s=None, output_tokens=None, chunks=0)] * 90
    runs[4].__dict__["records"] = tuple(cut)

    assert _codes(judge(runs, base, SPEC))["throughput"] is GateExit.FAILED
    assert _codes(judge(base, runs, SPEC))["throughput"] is GateExit.PASSED


def test_each_round_is_held_against_the_baseline(tmp_path: Path) -> None:
    """The engine was restarted with another flag before the last round."""
    runs = [_swing(tmp_path / f"c{i}", 1.0, i) for i in range(3)]
    runs.append(_swing(tmp_path / "c3", 1.0, 3, flags={"block_size": "32"}))
    base = [_swing(tmp_path / f"b{i}", 1.0, i) for i in range(4)]

    assert judge(runs, base, SPEC).code is GateExit.UNLIKE_BASELINE


def test_a_spec_without_gates_passes_nothing(tmp_path: Path) -> None:
    """Nothing was held against anything, which is no pass."""
    runs = [_open(tmp_path, [_record(i / 30) for i in range(300)])]

    assert judge(runs, None, SPEC.model_copy(update={"gates": ()})).code is GateExit.NO_DATA


def test_a_run_is_no_baseline_of_itself(tmp_path: Path) -> None:
    """A mistyped path would pass every release with a loss of exactly 0."""
    runs = [_swing(tmp_path / f"c{i}", 1.0, i) for i in range(4)]

    assert judge(runs, list(runs), SPEC).code is GateExit.UNLIKE_BASELINE
