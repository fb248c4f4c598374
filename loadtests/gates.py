"""Runs of a candidate, and of a baseline -> pass or fail by the gates of slo.yaml, closed when in doubt.

Latency: the quantile over all requests of all rounds, where a request that was still unanswered when the run
was cut counts as worse than any. Errors: failed of judged requests. Throughput: output tokens a second of closed
loops, in pairs with the baseline, by the test in `loadtests.pairtest`.
"""

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loadtests import identity
from loadtests.pairtest import PairedLoss, paired_loss, pairs_needed
from loadtests.records import RequestRecord, percentile
from loadtests.report import client_health, rates
from loadtests.run import LoadResult
from loadtests.throughput import tokens_per_second
from slo.delivery import Gate
from slo.spec import Spec


class GateExit(enum.IntEnum):
    """Exit codes. What makes the numbers void comes before what they say."""

    PASSED = 0
    FAILED = 10
    NO_DATA = 11
    TOO_FEW_SAMPLES = 12
    RATE_NOT_REACHED = 13
    CLIENT_SATURATED = 14
    UNLIKE_BASELINE = 15
    INCONCLUSIVE = 16
    NOT_JUDGEABLE = 17
    CRASHED = 70


_PRECEDENCE = (
    GateExit.NO_DATA,
    GateExit.UNLIKE_BASELINE,
    GateExit.CLIENT_SATURATED,
    GateExit.RATE_NOT_REACHED,
    GateExit.TOO_FEW_SAMPLES,
    GateExit.FAILED,
    GateExit.NOT_JUDGEABLE,
    GateExit.INCONCLUSIVE,
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the verdict. `value` and `bound` in the gate's base unit, None where nothing could be measured."""

    name: str
    outcome: GateExit
    value: float | None
    bound: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks, and the exit code they come to."""

    checks: tuple[Check, ...]

    @property
    def code(self) -> GateExit:
        """The worst outcome by precedence."""
        found = {check.outcome for check in self.checks}
        return next((code for code in _PRECEDENCE if code in found), GateExit.PASSED)


def judge(runs: Sequence[LoadResult], baseline: Sequence[LoadResult] | None, spec: Spec) -> Verdict:
    """Hold *runs* (rounds of one build) against the gates, and against *baseline* where it is given."""
    if not runs or not any(run.records for run in runs):
        return Verdict((Check("data", GateExit.NO_DATA, None, None, "the run holds no request"),))
    if not spec.gates:
        return Verdict((Check("gates", GateExit.NO_DATA, None, None, "the spec has no gate to hold"),))
    checks = [*_void(runs, spec, "run"), *(_void(baseline, spec, "baseline") if baseline else ())]
    checks += _unlike(runs, baseline) if baseline else []
    for gate in spec.gates:
        if gate.sli == "throughput":
            checks.append(_throughput(gate, runs, baseline, spec))
        elif gate.sli == "errors":
            checks.append(_errors(gate, runs, spec))
        else:
            checks.append(_latency(gate, runs, spec))
    return Verdict(tuple(checks))


def _void(runs: Sequence[LoadResult], spec: Spec, whose: str) -> list[Check]:
    """What makes the numbers of *runs* worth nothing."""
    checks = []
    samples = [sample for run in runs for sample in run.health]
    health = client_health(samples, spec.load.client)
    name = f"{whose}: client"
    if health["saturated"] is None:
        checks.append(
            Check(name, GateExit.NO_DATA, None, None, "the load client's own health was not sampled")
        )
    elif health["saturated"]:
        cpu, lag = health["cpu_ratio"]["p95"], health["event_loop_lag_s"]["p99"]
        detail = f"it was the bottleneck: {cpu:.0%} of a core (P95), event loop {lag * 1e3:.1f} ms late (P99)"
        checks.append(Check(name, GateExit.CLIENT_SATURATED, cpu, spec.load.client.max_cpu_ratio, detail))
    for run in runs:
        reached = rates(run)
        target, sent = reached["target_per_s"], reached["sent_per_s"]
        if target and (sent or 0.0) < target * spec.gate_test.min_rate_ratio:
            detail = f"{sent or 0:.4g} of {target:.4g} requests a second were sent in {run.folder.name}"
            checks.append(Check(f"{whose}: rate", GateExit.RATE_NOT_REACHED, sent, target, detail))
        if run.stopped:
            detail = f"{run.folder.name} was stopped before its plan was over"
            checks.append(Check(f"{whose}: complete", GateExit.RATE_NOT_REACHED, None, None, detail))
    return checks


def _unlike(runs: Sequence[LoadResult], baseline: Sequence[LoadResult]) -> list[Check]:
    """Things that make the baseline one of something else."""
    known = [identity.read(run.folder) for run in (*runs, *baseline)]
    found = [one for one in known if one is not None]
    if len(found) < len(known):
        detail = "no identity was kept beside the run or the baseline, so nobody knows if they are alike"
        return [Check("baseline: alike", GateExit.UNLIKE_BASELINE, None, None, detail)]
    theirs = found[len(runs)]
    lines = list(dict.fromkeys(line for one in found for line in identity.differences(one, theirs)))
    if [run.plan.random_seed for run in runs] != [run.plan.random_seed for run in baseline][: len(runs)]:
        lines.append("random_seed: rounds of run and baseline differ, they are not pairs")
    if {run.folder.resolve() for run in runs} & {run.folder.resolve() for run in baseline}:
        lines.append("folder: a round of the run is one of the baseline too, nothing is compared with itself")
    return [Check("baseline: alike", GateExit.UNLIKE_BASELINE, None, None, line) for line in lines]


_LATENCIES: dict[str, tuple[Callable[[RequestRecord], float | None], str]] = {
    "time_to_first_token": (lambda record: record.ttft_s, "time to first token"),
    "request_duration": (lambda record: record.e2e_s, "request duration"),
    "time_per_output_token": (lambda record: record.tpot_s, "time per output token"),
}


def _latency(gate: Gate, runs: Sequence[LoadResult], spec: Spec) -> Check:
    assert gate.quantile is not None and gate.max_seconds is not None  # the spec checks it
    measure, what = _LATENCIES[gate.sli]
    last = [record for run in runs for record in run.records if not record.will_retry]
    known = [value for record in last if record.outcome == "ok" and (value := measure(record)) is not None]
    if gate.sli == "time_to_first_token":
        known += [v for r in last if r.outcome == "unfinished" and (v := measure(r)) is not None]
        open_ends = sum(r.outcome == "unfinished" and r.first_token_s is None for r in last)
    else:
        open_ends = sum(record.outcome == "unfinished" for record in last)
    samples = sorted(known) + [math.inf] * open_ends
    if len(samples) < spec.gate_min_samples:
        detail = f"{len(samples)} samples of {what}, {spec.gate_min_samples} are needed"
        return Check(gate.id, GateExit.TOO_FEW_SAMPLES, None, gate.max_seconds, detail)
    value = percentile(samples, gate.quantile * 100)
    outcome = GateExit.PASSED if value <= gate.max_seconds else GateExit.FAILED
    shown = "no answer" if math.isinf(value) else f"{value * 1e3:.1f} ms"
    detail = f"P{gate.quantile * 100:g} of {what}: {shown} of at most {gate.max_seconds * 1e3:g} ms, {len(samples)} samples"
    return Check(gate.id, outcome, None if math.isinf(value) else value, gate.max_seconds, detail)


def _errors(gate: Gate, runs: Sequence[LoadResult], spec: Spec) -> Check:
    assert gate.max_ratio is not None  # the spec checks it
    last = [record for run in runs for record in run.records if not record.will_retry]
    failed = sum(record.outcome == "error" for record in last)
    judged = failed + sum(record.outcome == "ok" for record in last)
    if judged < spec.gate_min_samples:
        detail = f"{judged} judged requests, {spec.gate_min_samples} are needed"
        return Check(gate.id, GateExit.TOO_FEW_SAMPLES, None, gate.max_ratio, detail)
    ratio = failed / judged
    outcome = GateExit.PASSED if ratio <= gate.max_ratio else GateExit.FAILED
    detail = f"{failed} of {judged} requests failed ({ratio:.2%} of at most {gate.max_ratio:.2%})"
    return Check(gate.id, outcome, ratio, gate.max_ratio, detail)


def _throughput(
    gate: Gate, runs: Sequence[LoadResult], baseline: Sequence[LoadResult] | None, spec: Spec
) -> Check:
    assert gate.max_loss_ratio is not None  # the spec checks it
    bound, test = gate.max_loss_ratio, spec.gate_test
    if baseline is None:
        return Check(gate.id, GateExit.PASSED, None, bound, "not judged: no baseline was given")
    if any(run.plan.arrival.kind != "closed" for run in (*runs, *baseline)):
        detail = "an open loop below saturation answers what arrives; judge throughput with a closed loop"
        return Check(gate.id, GateExit.NOT_JUDGEABLE, None, bound, detail)
    both = _throughputs(runs, baseline, spec)
    if silent := sum(theirs is not None and mine is None for mine, theirs in both):
        detail = f"{silent} rounds gave no output tokens to speak of, where the baseline's did"
        return Check(gate.id, GateExit.FAILED, None, bound, detail)
    pairs = _known(both)
    if len(pairs) < test.min_pairs:
        detail = f"{len(pairs)} pairs with output tokens, at least {test.min_pairs} are needed"
        return Check(gate.id, GateExit.TOO_FEW_SAMPLES, None, bound, detail)
    found = paired_loss(pairs, test.significance)
    return Check(
        gate.id, _loss_outcome(found, bound), found.loss, bound, _loss_detail(found, bound, test.significance)
    )


def _throughputs(
    runs: Sequence[LoadResult], baseline: Sequence[LoadResult], spec: Spec
) -> list[tuple[float | None, float | None]]:
    warmup_s = spec.gate_test.warmup_seconds
    return [
        (tokens_per_second(run, warmup_s), tokens_per_second(base, warmup_s))
        for run, base in zip(runs, baseline, strict=False)
    ]


def _known(both: Sequence[tuple[float | None, float | None]]) -> list[tuple[float, float]]:
    return [(mine, theirs) for mine, theirs in both if mine and theirs]


def pairs_wanted(runs: Sequence[LoadResult], baseline: Sequence[LoadResult], spec: Spec) -> int:
    """How many pairs the noise of the first ones asks for, between min_pairs and max_pairs of the spec.

    The number with which a build that lost `design_loss_ratio` passes every throughput gate with probability
    1 - significance. Ask once, run the rest, judge once: looking again and again would let noise decide.
    """
    pairs = _known(_throughputs(runs, baseline, spec))
    return pairs_for(paired_loss(pairs, spec.gate_test.significance).noise if pairs else None, spec)


def pairs_for(noise: float | None, spec: Spec) -> int:
    """The same for the *noise* of one pair, as `paired_loss` says it."""
    test, wanted = spec.gate_test, spec.gate_test.min_pairs
    for gate in spec.gates:
        if gate.max_loss_ratio is not None and noise is not None:
            needed = pairs_needed(noise, gate.max_loss_ratio, test.significance, loss=test.design_loss_ratio)
            wanted = max(wanted, test.max_pairs if needed is None else needed)
    return min(wanted, test.max_pairs)


def _loss_outcome(found: PairedLoss, bound: float) -> GateExit:
    if found.within(bound):
        return GateExit.PASSED
    return GateExit.FAILED if found.loss > bound else GateExit.INCONCLUSIVE


def _loss_detail(found: PairedLoss, bound: float, significance: float) -> str:
    noise, upper = found.noise or 0.0, found.upper or 0.0
    needed = pairs_needed(noise, bound, significance)
    more = pairs_needed(noise, bound, significance, loss=max(found.loss, 0.0))
    text = (
        f"loss {found.loss:+.2%}, at most {upper:.2%} with {1 - significance:.0%} confidence, bound {bound:.0%}; "
        f"{found.pairs} pairs, {noise:.2%} noise a pair: a build as good as the baseline needs {needed} pairs"
    )
    return text if found.within(bound) or more is None else f"{text}, this one {more}"


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON-ready data."""
    checks = [
        {
            "name": c.name,
            "outcome": c.outcome.name.lower(),
            "value": c.value,
            "bound": c.bound,
            "detail": c.detail,
        }
        for c in verdict.checks
    ]
    return {"outcome": verdict.code.name.lower(), "exit_code": int(verdict.code), "checks": checks}
