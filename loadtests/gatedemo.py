"""Simulated builds of known slowness -> how often the gate passes each, and that broken runs fail with their codes.

Each try is what a release would do: rounds of the candidate and of the baseline in turn, judged by slo.yaml. The
engine is the simulated one, slowed by its `slow_decode` scenario between rounds.
"""

import contextlib
import json
import math
import random
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from loadtests.gates import judge, pairs_for, pairs_wanted
from loadtests.pairtest import paired_loss
from loadtests.plan import LoadPlan, closed, open_loop, parse_plan
from loadtests.rounds import read_rounds, run_rounds
from loadtests.run import LoadResult
from loadtests.throughput import tokens_per_second
from loadtests.verdict import GateExit
from slo.spec import Spec

BUILDS = {"healthy": 0.0, "1 % slower": 0.01, "10 % slower": 0.10}
CURVE_PERCENT = tuple(range(13))
_RESAMPLES = 4000
_SIM_FLAGS = [
    "--port",
    "0",
    "--decode-step-seconds",
    "0.006",
    "--decode-sequence-seconds",
    "0",
    "--prefill-tokens-per-second",
    "1000000",
    "--frontend-seconds",
    "0",
    "--max-num-seqs",
    "8",
]
_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class DemoResult:
    """passes: build → tries that passed, of `tries`. log_ratios: healthy against baseline, pair by pair."""

    tries: int
    passes: dict[str, int]
    outcomes: dict[str, list[str]]
    log_ratios: list[float]


@dataclass(frozen=True)
class SimEngine:
    """A simulated engine that was started here; `slow(ratio)` makes its tokens that much rarer."""

    url: str
    control: str

    def slow(self, ratio: float) -> None:
        """Lose *ratio* of the throughput: each step takes 1/(1 - ratio) as long."""
        name = "slow_decode" if ratio else "healthy"
        params = {"factor": 1 / (1 - ratio)} if ratio else {}
        body = json.dumps({"name": name, "params": params}).encode()
        request = urllib.request.Request(self.control, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()


@contextlib.contextmanager
def sim_engine() -> Iterator[SimEngine]:
    """Start `python -m sim` on free ports; it ends with the block."""
    command = [sys.executable, "-m", "sim", *_SIM_FLAGS]
    with subprocess.Popen(
        command, cwd=_ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None  # asked for above
            line = process.stdout.readline()
            if "API " not in line:
                raise RuntimeError(f"the simulated engine did not start: {line!r}")
            words = line.replace(",", " ").split()
            yield SimEngine(words[words.index("API") + 1], words[words.index("control") + 1])
        finally:
            process.terminate()


def run_tries(folder: Path, spec: Spec, tries: int, lanes: int, say: Callable[[str], None]) -> DemoResult:
    """*tries* tries of every build, *lanes* at a time, each lane with its own engine."""
    numbers = list(range(tries))
    with ThreadPoolExecutor(lanes) as pool:
        parts = list(pool.map(lambda lane: _lane(folder, spec, numbers[lane::lanes], say), range(lanes)))
    merged: dict[str, list[str]] = {name: [] for name in BUILDS}
    logs: list[float] = []
    for outcomes, ratios in parts:
        logs += ratios
        for name, codes in outcomes.items():
            merged[name] += codes
    passes = {name: codes.count("passed") for name, codes in merged.items()}
    return DemoResult(tries, passes, merged, logs)


def _lane(
    folder: Path, spec: Spec, numbers: list[int], say: Callable[[str], None]
) -> tuple[dict[str, list[str]], list[float]]:
    outcomes: dict[str, list[str]] = {name: [] for name in BUILDS}
    logs: list[float] = []
    with sim_engine() as engine:
        for number in numbers:
            where = folder / f"try-{number:02d}"
            _one_try(where, engine, spec, seed=100 * number)
            base = read_rounds(where / "baseline")
            for name in BUILDS:
                code = judge(read_rounds(where / name), base, spec).code
                outcomes[name].append(code.name.lower())
                say(f"try {number + 1}, {len(base)} pairs, {name}: {code.name.lower().replace('_', ' ')}")
            logs += _log_ratios(read_rounds(where / "healthy"), base, spec)
    return outcomes, logs


def _one_try(where: Path, engine: SimEngine, spec: Spec, seed: int) -> None:
    """Rounds of baseline and every build: the fewest first, then as many as their noise asks for."""
    slowness = {where / "baseline": 0.0, **{where / name: loss for name, loss in BUILDS.items()}}
    folders = dict.fromkeys(slowness, engine.url)
    plan, pairs = _plan(engine.url, seed), spec.gate_test.min_pairs

    def slow_down(build: Path, _: int) -> None:
        engine.slow(slowness[build])

    run_rounds(plan, folders, pairs, told=slow_down)
    base = read_rounds(where / "baseline")
    wanted = max(pairs_wanted(read_rounds(where / name), base, spec) for name in BUILDS)
    if wanted > pairs:
        run_rounds(plan, folders, wanted - pairs, first=pairs, told=slow_down)


def _log_ratios(runs: list[LoadResult], base: list[LoadResult], spec: Spec) -> list[float]:
    warmup_s = spec.gate_test.warmup_seconds
    both = [
        (tokens_per_second(a, warmup_s), tokens_per_second(b, warmup_s))
        for a, b in zip(runs, base, strict=True)
    ]
    return [math.log(mine / theirs) for mine, theirs in both if mine and theirs]


def power_curve(log_ratios: Sequence[float], spec: Spec, bound: float) -> dict[int, float]:
    """
    Percent slower → share of passes, by drawing pairs from the noise measured between equal builds.

    As a release does: the first pairs say by their noise how many are needed, then it is judged once.
    Without a pair of equal builds there is no noise to draw from, and the curve is empty.
    """
    if not log_ratios:
        return {}
    rng = random.Random(0)
    middle = sum(log_ratios) / len(log_ratios)
    noise = [log - middle for log in log_ratios]
    test = spec.gate_test

    def passes(percent: int) -> bool:
        def drawn(count: int) -> list[tuple[float, float]]:
            return [((1 - percent / 100) * math.exp(log), 1.0) for log in rng.choices(noise, k=count)]

        pairs = drawn(test.min_pairs)
        wanted = pairs_for(paired_loss(pairs, test.significance).noise, spec)
        pairs += drawn(wanted - len(pairs))
        return paired_loss(pairs, test.significance).within(bound)

    return {
        percent: sum(passes(percent) for _ in range(_RESAMPLES)) / _RESAMPLES for percent in CURVE_PERCENT
    }


def broken_runs(folder: Path) -> dict[str, int]:
    """Runs that must not pass → the exit status of `inferwatch gate` on them."""
    with sim_engine() as engine:
        nothing = {"kind": "closed", "segments": [{"duration_s": 1, "start": 0, "end": 0}]}
        plans = {
            "empty run": parse_plan({**_plan(engine.url).model_dump(), "arrival": nothing}),
            "saturated client": parse_plan(
                {
                    **_plan(engine.url).model_dump(),
                    "arrival": open_loop(4000, 3),
                    "drain_s": 0.5,
                    "output_tokens": 1,
                }
            ),
            "crashed gate": _plan(engine.url),
        }
        for name, plan in plans.items():
            run_rounds(plan, {folder / name: engine.url}, 1)
    (folder / "crashed gate" / "round-00" / "records.parquet").write_bytes(b"not parquet")
    code = "import sys; from inferwatch.cli import main; main()"
    return {
        name: subprocess.run(
            [sys.executable, "-c", code, "gate", str(folder / name)],
            cwd=_ROOT,
            capture_output=True,
            check=False,
        ).returncode
        for name in plans
    }


EXPECTED_BROKEN = {
    "empty run": GateExit.NO_DATA,
    "saturated client": GateExit.CLIENT_SATURATED,
    "crashed gate": GateExit.CRASHED,
}


def _plan(url: str, seed: int = 0) -> LoadPlan:
    raw = {"base_url": url, "model": "sim-llama", "arrival": closed(24, 4.0), "random_seed": seed}
    raw |= {"prompt_tokens": 16, "output_tokens": 8, "ignore_eos": True, "drain_s": 5}
    return parse_plan(raw)
