"""`make gate-demo` in small: real runs on the simulated engine, through the gate as a release goes through it."""

from pathlib import Path

import pytest

from loadtests import gatedemo
from loadtests.plan import Arrival
from loadtests.plan import closed as closed_loop
from loadtests.rounds import read_rounds
from loadtests.throughput import tokens_per_second
from slo import spec as slo_spec

WARMUP_S = 0.5


@pytest.mark.integration
def test_broken_runs_fail_each_with_its_own_code(tmp_path: Path) -> None:
    """No data, a client that was the bottleneck, a gate that crashed: never a pass, never the same."""
    assert gatedemo.broken_runs(tmp_path) == {
        "empty run": 11,
        "saturated client": 14,
        "crashed gate": 70,
    }


@pytest.mark.integration
def test_one_try_measures_every_build_in_pairs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pairs of 1.5 s: a build of a tenth of the speed, slow enough for a busy machine too, does not pass."""

    def short(users: float, _: float) -> Arrival:
        return closed_loop(users, 1.5)

    monkeypatch.setattr(gatedemo, "closed", short)
    monkeypatch.setattr(gatedemo, "BUILDS", {"healthy": 0.0, "a tenth as fast": 0.9})
    spec = slo_spec.load()
    few = spec.gate_test.model_copy(update={"min_pairs": 2, "max_pairs": 2, "warmup_seconds": WARMUP_S})
    said: list[str] = []
    result = gatedemo.run_tries(tmp_path, spec.model_copy(update={"gate_test": few}), 1, 1, said.append)
    rates = {
        name: [tokens_per_second(run, WARMUP_S) or 0.0 for run in read_rounds(tmp_path / "try-00" / name)]
        for name in ("baseline", "healthy", "a tenth as fast")
    }

    assert result.tries == 1
    assert {name: len(found) for name, found in rates.items()} == dict.fromkeys(rates, 2)
    assert 0 < sum(rates["a tenth as fast"]) < 0.8 * sum(rates["baseline"])
    assert result.passes["a tenth as fast"] == 0
    assert result.outcomes["a tenth as fast"] != ["passed"]
    assert len(result.log_ratios) == 2
    assert [line.split(", ")[:2] for line in said] == [["try 1", "2 pairs"]] * 2
