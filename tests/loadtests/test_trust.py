"""What makes a run's numbers void, each way with its own code."""

import dataclasses
from pathlib import Path

from loadtests import identity
from loadtests.gates import judge
from loadtests.plan import open_loop
from loadtests.verdict import GateExit
from tests.loadtests.made import SPEC, pairs, record, run, steady, swing


def test_ways_of_failing_closed(tmp_path: Path) -> None:
    """No data, too few samples, a rate not reached, a saturated or unsampled client: each its own code."""
    good = [record(i / 30) for i in range(300)]
    hot = ({"cpu_ratio": 0.95, "lag_s": [0.001], "seconds": 1.0},)
    late = [record(i / 30, sent_s=i / 15) for i in range(300)]
    found = [
        judge([], None, SPEC).code,
        judge([steady(tmp_path, [])], None, SPEC).code,
        judge([steady(tmp_path, good, health=())], None, SPEC).code,
        judge([steady(tmp_path, good[:150])], None, SPEC).code,
        judge([steady(tmp_path, late)], None, SPEC).code,
        judge([steady(tmp_path, good, health=hot)], None, SPEC).code,
    ]

    assert found == [
        *[GateExit.NO_DATA] * 3,
        GateExit.TOO_FEW_SAMPLES,
        GateExit.RATE_NOT_REACHED,
        GateExit.CLIENT_SATURATED,
    ]
    assert len({int(code) for code in GateExit}) == len(GateExit)


def test_a_run_that_ended_early_without_a_word(tmp_path: Path) -> None:
    """300 requests of the first 5 s of a minute at 60/s: every one that became due was sent."""
    early = run(tmp_path, [record(i / 60) for i in range(300)], open_loop(60, 60))
    lucky = run(tmp_path, [record(i / 57) for i in range(3400)], open_loop(60, 60))

    most = early.plan.model_copy(update={"max_requests": 1000})
    capped = dataclasses.replace(early, plan=most)
    capped.__dict__.update(records=early.records, health=early.health)

    assert judge([early], None, SPEC).code is GateExit.RATE_NOT_REACHED
    assert judge([capped], None, SPEC).code is GateExit.RATE_NOT_REACHED  # 300 of the 1,000 that were wanted
    assert judge([lucky], None, SPEC).code is GateExit.PASSED  # 3,600 - 200 is within 5 % and chance


def test_one_saturated_round_of_many(tmp_path: Path) -> None:
    """One of thirty rounds had a full core: 3 % of all samples."""
    records = [record(i / 30) for i in range(300)]
    hot = ({"cpu_ratio": 1.0, "lag_s": [0.001], "seconds": 1.0},) * 3
    calm = ({"cpu_ratio": 0.2, "lag_s": [0.001], "seconds": 1.0},) * 3
    runs = [steady(tmp_path / f"r{i}", records, health=hot if i == 7 else calm) for i in range(30)]
    verdict = judge(runs, None, SPEC)

    assert verdict.code is GateExit.CLIENT_SATURATED
    assert "in r7" in verdict.checks[0].detail


def test_unlike_things_are_not_compared(tmp_path: Path) -> None:
    """Another engine, other flags, other seeds, no identity: refused; another version is what gates are for."""
    other = pairs(tmp_path / "1", [1.0] * 4, engine="sglang")
    flags = pairs(tmp_path / "2", [1.0] * 4, flags={"block_size": "32"})
    newer = pairs(tmp_path / "3", [1.0, 1.001, 0.999, 1.0], engine_version="2")
    runs = [swing(tmp_path / f"4c{i}", 1.0, i) for i in range(4)]
    base = [swing(tmp_path / f"4b{i}", 1.0, i + 1) for i in range(4)]
    seeds = judge(runs, base, SPEC)
    (runs[0].folder / identity.IDENTITY_FILE).unlink()
    nameless = judge(runs, [swing(tmp_path / f"5b{i}", 1.0, i) for i in range(4)], SPEC)

    assert [v.code for v in (other, flags, seeds, nameless)] == [GateExit.UNLIKE_BASELINE] * 4
    assert newer.code is GateExit.PASSED
    assert any("engine: 'sglang' against 'vllm'" in check.detail for check in other.checks)


def test_each_round_is_held_against_the_baseline(tmp_path: Path) -> None:
    """The engine was restarted with another flag before the last round."""
    runs = [swing(tmp_path / f"c{i}", 1.0, i) for i in range(3)]
    runs.append(swing(tmp_path / "c3", 1.0, 3, flags={"block_size": "32"}))
    base = [swing(tmp_path / f"b{i}", 1.0, i) for i in range(4)]

    assert judge(runs, base, SPEC).code is GateExit.UNLIKE_BASELINE


def test_a_run_is_no_baseline_of_itself(tmp_path: Path) -> None:
    """A mistyped path would pass every release with a loss of exactly 0."""
    runs = [swing(tmp_path / f"c{i}", 1.0, i) for i in range(4)]

    assert judge(runs, list(runs), SPEC).code is GateExit.UNLIKE_BASELINE
