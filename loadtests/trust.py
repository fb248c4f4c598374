"""Runs -> what makes their numbers void: a client at its limit, load that was not sent, a baseline of something else."""

import math
from collections.abc import Sequence

from loadtests import identity
from loadtests.report import client_health, rates
from loadtests.run import LoadResult
from loadtests.verdict import Check, GateExit
from slo.spec import Spec

OFFERED_DEVIATIONS = 4.0
"""So far under its mean a healthy arrival process comes once in thirty thousand runs."""


def void(runs: Sequence[LoadResult], spec: Spec, whose: str) -> list[Check]:
    """What makes the numbers of *runs* worth nothing."""
    checks = [_client(runs, spec, f"{whose}: client")]
    for run in runs:
        checks += [_rate(run, spec, f"{whose}: rate"), _offered(run, spec, f"{whose}: rate")]
        if run.stopped:
            detail = f"{run.folder.name} was stopped before its plan was over"
            checks.append(Check(f"{whose}: complete", GateExit.RATE_NOT_REACHED, None, None, detail))
    return [check for check in checks if check is not None]


def _client(runs: Sequence[LoadResult], spec: Spec, name: str) -> Check | None:
    """The client as the bottleneck: over all rounds, or most of the time in one of them."""
    limits = spec.load.client
    health = client_health([sample for run in runs for sample in run.health], limits)
    if health["saturated"] is None:
        return Check(name, GateExit.NO_DATA, None, None, "the load client's own health was not sampled")
    if health["saturated"]:
        cpu, lag = health["cpu_ratio"]["p95"], health["event_loop_lag_s"]["p99"]
        cpu = max(cpu, health["cpu_ratio_at_requests_p95"] or 0.0)
        detail = f"it was the bottleneck: {cpu:.0%} of a core (P95), event loop {lag * 1e3:.1f} ms late (P99)"
        return Check(name, GateExit.CLIENT_SATURATED, cpu, limits.max_cpu_ratio, detail)
    for run in runs:
        own = client_health(run.health, limits)["cpu_ratio"]
        if own is None:
            detail = f"the load client's own health was not sampled in {run.folder.name}"
            return Check(name, GateExit.NO_DATA, None, None, detail)
        if own["p50"] > limits.max_cpu_ratio:
            detail = f"it was the bottleneck in {run.folder.name}: {own['p50']:.0%} of a core (P50)"
            return Check(name, GateExit.CLIENT_SATURATED, own["p50"], limits.max_cpu_ratio, detail)
    return None


def _rate(run: LoadResult, spec: Spec, name: str) -> Check | None:
    """Requests that were due and sent too late or not at all."""
    reached = rates(run)
    target, sent = reached["target_per_s"], reached["sent_per_s"]
    if not target or (sent or 0.0) >= target * spec.gate_test.min_rate_ratio:
        return None
    detail = f"{sent or 0:.4g} of {target:.4g} requests a second were sent in {run.folder.name}"
    return Check(name, GateExit.RATE_NOT_REACHED, sent, target, detail)


def _offered(run: LoadResult, spec: Spec, name: str) -> Check | None:
    """Requests that never became due though the plan wanted them: a client that ended or stalled without a word."""
    arrival = run.plan.arrival
    wanted = arrival.offered_requests
    if wanted is None:
        return None
    # Counts of a renewal process spread by the square root of mean × squared coefficient of variation.
    spread = {"constant": 0.0, "poisson": 1.0, "gamma": 1 / arrival.burstiness}[arrival.process]
    least = wanted * spec.gate_test.min_rate_ratio - OFFERED_DEVIATIONS * math.sqrt(wanted * spread) - 1
    if run.plan.max_requests is not None:
        wanted, least = min(wanted, run.plan.max_requests), min(least, run.plan.max_requests)
    due = sum(record.attempt == 0 for record in run.records)
    if due >= least:
        return None
    detail = f"{due} of about {wanted:.0f} planned requests became due in {run.folder.name}"
    return Check(name, GateExit.RATE_NOT_REACHED, due, wanted, detail)


def unlike(runs: Sequence[LoadResult], baseline: Sequence[LoadResult]) -> list[Check]:
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
