"""Runs of a candidate, and of a baseline -> pass or fail by the gates of slo.yaml, closed when in doubt.

Latency: the quantile over all requests of all rounds, where a request that was still unanswered when the run
was cut counts as worse than any. Errors: failed of judged requests, among which are those whose answer had no end
when the run's patience (`drain_s`) was over. Throughput: output tokens a second of closed loops, in pairs with the
baseline, by the test in `loadtests.pairtest`.
"""

import itertools
import math
from collections.abc import Sequence

from loadtests.pairtest import PairedLoss, paired_loss, pairs_needed
from loadtests.records import RequestRecord, failures, percentile
from loadtests.report import MEASURES
from loadtests.rounds import not_in_turn
from loadtests.run import LoadResult
from loadtests.throughput import tokens_per_second
from loadtests.trust import unlike, void
from loadtests.verdict import Check, GateExit, Verdict
from slo.delivery import Gate
from slo.spec import Spec


def judge(runs: Sequence[LoadResult], baseline: Sequence[LoadResult] | None, spec: Spec) -> Verdict:
    """Hold *runs* (rounds of one build) against the gates, and against *baseline* where it is given."""
    if not runs or not any(run.records for run in runs):
        return Verdict((Check("data", GateExit.NO_DATA, None, None, "the run holds no request"),))
    if not spec.gates:
        return Verdict((Check("gates", GateExit.NO_DATA, None, None, "the spec has no gate to hold"),))
    checks = [*void(runs, spec, "run"), *(void(baseline, spec, "baseline") if baseline else ())]
    checks += unlike(runs, baseline) if baseline else []
    for gate in spec.gates:
        if gate.sli == "throughput":
            checks.append(_throughput(gate, runs, baseline, spec))
        elif gate.sli == "errors":
            checks.append(_errors(gate, runs, spec))
        else:
            checks.append(_latency(gate, runs, spec))
    return Verdict(tuple(checks))


_LATENCIES = {
    "time_to_first_token": "ttft_s",
    "request_duration": "e2e_s",
    "time_per_output_token": "tpot_s",
    "inter_chunk_gap": "inter_chunk_gap_s",
    "latency_from_schedule": "latency_from_schedule_s",
}
"""SLI of slo.yaml -> the measure of a record (`loadtests.report.MEASURES`)."""


def _judged(gate: Gate, runs: Sequence[LoadResult]) -> tuple[list[RequestRecord], str]:
    """The last try of each request that *gate* is about, and whose they are in words."""
    records = [
        record
        for run in runs
        for record in run.records
        if not record.will_retry
        and (gate.lane is None or record.lane == gate.lane)
        and (gate.tenant is None or record.tenant == gate.tenant)
    ]
    whose = [f"{label} {name}" for label, name in (("lane", gate.lane), ("tenant", gate.tenant)) if name]
    return records, f" of {', '.join(whose)}" if whose else ""


def _latency(gate: Gate, runs: Sequence[LoadResult], spec: Spec) -> Check:
    assert gate.quantile is not None and gate.max_seconds is not None  # the spec checks it
    measure, what = MEASURES[_LATENCIES[gate.sli]], gate.sli.replace("_", " ")
    last, whose = _judged(gate, runs)
    unfinished = [record for record in last if record.outcome == "unfinished"]
    counted = [record for record in last if record.outcome == "ok"]
    if gate.sli == "time_to_first_token":
        counted += [record for record in unfinished if record.first_token_s is not None]
        unfinished = [record for record in unfinished if record.first_token_s is None]
    known = [[value for value in measure(record) if value is not None] for record in counted]
    told = sum(map(bool, known)) + len(unfinished)
    if told < spec.gate_min_samples:
        detail = f"{told} requests{whose} with a {what}, {spec.gate_min_samples} are needed"
        return Check(gate.id, GateExit.TOO_FEW_SAMPLES, None, gate.max_seconds, detail)
    samples = sorted(itertools.chain.from_iterable(known)) + [math.inf] * len(unfinished)
    value = percentile(samples, gate.quantile * 100)
    outcome = GateExit.PASSED if value <= gate.max_seconds else GateExit.FAILED
    shown = "no answer" if math.isinf(value) else f"{value * 1e3:.1f} ms"
    detail = (
        f"P{gate.quantile * 100:g} of {what}{whose}: {shown} of at most {gate.max_seconds * 1e3:g} ms, "
        f"{len(samples)} samples"
    )
    return Check(gate.id, outcome, None if math.isinf(value) else value, gate.max_seconds, detail)


def _errors(gate: Gate, runs: Sequence[LoadResult], spec: Spec) -> Check:
    assert gate.max_ratio is not None  # the spec checks it
    last, whose = _judged(gate, runs)
    failed, judged = failures(last)
    open_ends = sum(record.outcome == "unfinished" for record in last)
    if judged < spec.gate_min_samples:
        detail = f"{judged} judged requests{whose}, {spec.gate_min_samples} are needed"
        return Check(gate.id, GateExit.TOO_FEW_SAMPLES, None, gate.max_ratio, detail)
    ratio = failed / judged
    outcome = GateExit.PASSED if ratio <= gate.max_ratio else GateExit.FAILED
    detail = f"{failed - open_ends} of {judged} requests{whose} failed"
    if open_ends:
        waited = min(run.plan.drain_s for run in runs)
        detail += f", {open_ends} had no end {waited:g} s (drain_s) after the last one was sent"
    detail += f" ({ratio:.2%} of at most {gate.max_ratio:.2%})"
    return Check(gate.id, outcome, ratio, gate.max_ratio, detail)


def _throughput(
    gate: Gate, runs: Sequence[LoadResult], baseline: Sequence[LoadResult] | None, spec: Spec
) -> Check:
    assert gate.max_loss_ratio is not None  # the spec checks it
    bound, test = gate.max_loss_ratio, spec.gate_test
    if baseline is None:
        return Check(gate.id, GateExit.PASSED, None, bound, "not judged: no baseline was given")
    if detail := next(filter(None, map(_not_saturating, (*runs, *baseline))), None):
        return Check(gate.id, GateExit.NOT_JUDGEABLE, None, bound, detail)
    both = _throughputs(runs, baseline, spec)
    if silent := sum(theirs is not None and mine is None for mine, theirs in both):
        detail = f"{silent} rounds gave no output tokens, or no count of them, where the baseline's did"
        return Check(gate.id, GateExit.FAILED, None, bound, detail)
    pairs = _known(both)
    if len(pairs) < test.min_pairs:
        detail = f"{len(pairs)} pairs with output tokens, at least {test.min_pairs} are needed"
        return Check(gate.id, GateExit.TOO_FEW_SAMPLES, None, bound, detail)
    if detail := not_in_turn(runs, baseline):
        return Check(gate.id, GateExit.NOT_JUDGEABLE, None, bound, detail)
    found = paired_loss(pairs, test.significance)
    return Check(
        gate.id, _loss_outcome(found, bound), found.loss, bound, _loss_detail(found, bound, test.significance)
    )


def _not_saturating(run: LoadResult) -> str | None:
    """Why a run's throughput is not the server's; None for a closed loop of always the same clients, without thinking."""
    arrival = run.plan.arrival
    if arrival.kind != "closed":
        return "an open loop below saturation answers what arrives; judge throughput with a closed loop"
    if arrival.think_s:
        return f"clients think for {arrival.think_s:g} s between requests (think_s), which is no saturation; set it to 0"
    if len({level for segment in arrival.segments for level in (segment.start, segment.end)}) > 1:
        return "the number of clients changes during the run; judge throughput with one number"
    return None


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
