"""The power curve of the gate: how often builds of known slowness would pass, from measured noise."""

import json
import math
from typing import Any

import pytest
from click.testing import CliRunner

from inferwatch.cli import main
from loadtests.gatedemo import DemoResult, power_curve
from slo import spec


def test_without_noise_the_bound_decides() -> None:
    """Equal builds that measure equal: 4 % slower always passes a bound of 5 %, 6 % slower never."""
    curve = power_curve([0.0, 0.0, 0.0, 0.0], spec.load(), bound=0.05)

    assert {percent: curve[percent] for percent in (0, 4, 6, 12)} == {0: 1.0, 4: 1.0, 6: 0.0, 12: 0.0}


def test_noise_asks_for_pairs_until_a_good_build_passes() -> None:
    """
    Pairs that differ by ±3 % (a standard deviation of 3.1 %): four would pass a good build in half of all tries,
    the pairs that this noise asks for in nine of ten; at the bound it is one in twenty, give or take.
    """
    noise = [math.log(1.03), math.log(0.97)] * 10
    curve = power_curve(noise, spec.load(), bound=0.05)

    assert curve[0] > 0.9
    assert curve[5] == pytest.approx(0.05, abs=0.04)
    assert curve[10] < 0.001
    assert curve == dict(sorted(curve.items())) and list(curve) == list(range(13))


def test_without_a_pair_of_equal_builds_there_is_no_curve() -> None:
    """Every healthy try broke off before its first pair: that is to be told, not divided by."""
    assert power_curve([], spec.load(), bound=0.05) == {}


def _demo(monkeypatch: pytest.MonkeyPatch, healthy: int, broken: dict[str, int]) -> Any:
    """What the command says of 20 tries of which *healthy* good builds passed, and of these exit codes."""
    right = {"1 % slower": ["passed"] * 20, "10 % slower": ["failed"] * 20}
    outcomes = {"healthy": ["passed"] * healthy + ["inconclusive"] * (20 - healthy), **right}
    passes = {"healthy": healthy, "1 % slower": 20, "10 % slower": 0}
    result = DemoResult(20, passes, outcomes, [0.0, 0.0])
    monkeypatch.setattr("loadtests.gatedemo.run_tries", lambda *_: result)
    monkeypatch.setattr("loadtests.gatedemo.broken_runs", lambda _: broken)
    return CliRunner().invoke(main, ["gate-demo", "--json"])


def test_the_demo_holds_at_nineteen_of_twenty_and_with_every_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """18 right answers are too few, and so is one broken run that passed."""
    codes = {"empty run": 11, "saturated client": 14, "crashed gate": 70}
    good, unsure = _demo(monkeypatch, 19, codes), _demo(monkeypatch, 18, codes)
    passed = _demo(monkeypatch, 20, {**codes, "saturated client": 0})

    assert (good.exit_code, unsure.exit_code, passed.exit_code) == (0, 1, 1)
    assert json.loads(good.stdout)["right"] == {"healthy": 19, "1 % slower": 20, "10 % slower": 20}
    assert json.loads(passed.stdout)["exit_codes"]["saturated client"] == 0
