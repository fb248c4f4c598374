"""The loop's phases in order: bad deploy, kill, restart, light load, overload, aborts, hang idle, hang under load."""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict

from inferwatch.loop import load, notices
from inferwatch.loop.bench import Bench, Phase
from inferwatch.loop.compare import ClientTruth, Point, counts, quantile_pairs
from loadtests.records import RequestRecord
from slo.names import alerts, engine

# A deploy that turns every request away: each is answered 503, as the engine itself decides.
BAD_DEPLOY = ("--max-num-queued-reqs", "0")
DOWN = (alerts.ENGINE_DOWN, alerts.SERVICE_DOWN)
HUNG_IDLE = (alerts.CANARY_FAILING, alerts.ENGINE_HUNG)


def errors_100pct(bench: Bench) -> None:
    """Every request fails on an engine that is up."""
    run = bench.load("errors", load.rate(bench.plan.errors_per_second, bench.plan.errors_seconds))
    began = time.time()
    notices.wait_for_any(
        bench.settings.notifications_file,
        (alerts.REQUESTS_FAILING,),
        "firing",
        began,
        bench.plan.errors_seconds,
    )
    result = run.stop()
    fault = load.first_failure(result)
    if fault is None:
        bench.found.fail("errors_100pct: no request failed, the fault did not happen")
        return
    if answered := load.finished(result.records):
        bench.found.fail(f"errors_100pct: {len(answered)} requests were answered, so not all failed")
    bench.await_page("errors_100pct", (alerts.REQUESTS_FAILING,), fault, promised=True)


def kill_and_restart(bench: Bench) -> None:
    """The engine core is killed; vLLM's server ends with it. Then a good deploy comes up."""
    fault = time.time()
    bench.engine.kill_core()
    bench.await_page("down", DOWN, fault, promised=True)
    bench.engine.stop()
    bench.engine.start()


def light(bench: Bench) -> None:
    """Two clients: the promises hold and the ledgers agree to the token."""
    before = bench.snapshot()
    result = bench.load("light", load.clients(bench.plan.light_clients, bench.plan.light_seconds)).wait()
    _compare(bench, "light", before, result.records)


def overload(bench: Bench) -> None:
    """64 clients on 8 slots: the queue's signal and the latency page are delivered."""
    before = bench.snapshot()
    since = time.time()
    plan, delivered = bench.plan, bench.settings.notifications_file
    records: list[RequestRecord] = []
    for stretch in range(1 + plan.overload_most_stretches):
        seconds = plan.overload_stretch_seconds if stretch else plan.overload_seconds
        # Each stretch is answered to its end, so that every request has a whole record.
        run = bench.load(f"overload-{stretch}", load.clients(plan.overload_clients, seconds))
        records += run.wait().records
        if all(notices.first(delivered, (name,), "firing", since) for name in plan.overload_alerts):
            break
    last_call = time.time() + plan.overload_wait_seconds
    for name in plan.overload_alerts:
        wait = max(0.0, last_call - time.time())
        notice = notices.wait_for_any(delivered, (name,), "firing", since, wait)
        if notice is None:
            bench.found.fail(f"overload: {name} was not delivered")
        else:
            bench.reporter.say(f"overload: {name} delivered after {notice.received_at - since:.0f} s")
    _compare(bench, "overload", before, records)


def _compare(bench: Bench, phase: str, before: Point, records: Sequence[RequestRecord]) -> None:
    time.sleep(bench.plan.quiet_seconds)
    after = bench.snapshot()
    try:
        truth = load.truth(records)
        compared = counts(before, after, truth)
        pairs = [
            pair
            for what, family, seen in (
                ("time to first token", engine.TIME_TO_FIRST_TOKEN_SECONDS, truth.ttft_seconds),
                ("request duration", engine.REQUEST_DURATION_SECONDS, truth.e2e_seconds),
            )
            for pair in quantile_pairs(what, family, before.engine, after.engine, seen)
        ]
    except ValueError as error:
        bench.found.counts_match = bench.found.quantiles_within_bucket = False
        bench.found.fail(f"{phase}: {error}")
        return
    bench.found.counts[phase] = {c.what: [c.client, c.server, c.slack] for c in compared}
    bench.found.quantiles[phase] = [asdict(pair) for pair in pairs]
    for count in compared:
        if not count.matches:
            bench.found.counts_match = False
            bench.found.fail(
                f"{phase}: {count.what}: client {count.client:.0f}, server {count.server:.0f}, "
                f"of which {count.slack:.0f} may be canary requests that were given up"
            )
    for pair in pairs:
        if not pair.within_one_bucket:
            bench.found.quantiles_within_bucket = False
            bench.found.fail(f"{phase}: {pair} is {pair.buckets_apart} buckets apart")
    bench.reporter.say(f"{phase}: {truth.finished} requests, {truth.generation_tokens} tokens compared")


def aborts(bench: Bench) -> None:
    """
    Clients hang up on a share of their requests: the server's counts lie within the clients' bounds.

    vLLM counts the tokens of an aborted request and never its end; how many tokens it had made when
    the client left is known to the client only from below.
    """
    before = bench.snapshot()
    plan = bench.plan
    result = bench.load(
        "aborts", load.clients(plan.abort_clients, plan.abort_seconds), plan.abort_share
    ).wait()
    time.sleep(plan.quiet_seconds)
    after = bench.snapshot()
    cut = [r for r in result.records if r.outcome == "aborted"]
    if not cut:
        bench.found.fail("aborts: no request was aborted, the fault did not happen")
    whole = load.finished(result.records)
    own = ClientTruth(len(whole), 0, sum(r.output_tokens or 0 for r in whole), (), ())
    at_most_tokens = own.generation_tokens + sum(r.asked_output_tokens or 0 for r in cut)
    compared = {c.what: c for c in counts(before, after, own)}
    server = {what: count.server for what, count in compared.items()}
    bounds = {
        "requests finished": (len(whole), len(whole) + len(cut) + compared["requests finished"].slack),
        "generation tokens": (own.generation_tokens, at_most_tokens + compared["generation tokens"].slack),
    }
    for what, (least, most) in bounds.items():
        bench.found.counts.setdefault("aborts", {})[what] = [least, server[what], most]
        if not least <= server[what] <= most:
            bench.found.counts_match = False
            bench.found.fail(
                f"aborts: {what}: server {server[what]:.0f}, clients bound it to {least:.0f}–{most:.0f}"
            )


def hang_idle(bench: Bench) -> None:
    """The core hangs while nothing is asked: only the canary can see it."""
    bench.snapshot()
    # An overloaded engine fails the canary too, and an alert that still fires is not notified again.
    _wait_while_firing(bench, lambda name: name in HUNG_IDLE, bench.plan.page_wait_seconds)
    fault = time.time()
    bench.engine.hang()
    bench.await_page("hang_idle", HUNG_IDLE, fault, promised=False)
    bench.engine.resume()


def hang_under_load(bench: Bench) -> None:
    """The core hangs with requests in it."""
    plan = bench.plan
    run = bench.load(
        "hang", load.clients(plan.hang_clients, plan.hang_after_seconds + plan.page_wait_seconds)
    )
    time.sleep(plan.hang_after_seconds)
    fault = time.time()
    bench.engine.hang()
    bench.await_page("hang_under_load", (alerts.ENGINE_HUNG,), fault, promised=True)
    bench.engine.resume()
    result = run.stop()
    if not load.finished(result.records):
        bench.found.fail("hang_under_load: no request was answered before the hang, so there was no load")


def settle(bench: Bench) -> None:
    """Pages and signals resolve by themselves, but for budgets that a long window still holds against us."""
    plan = bench.plan
    _wait_while_firing(bench, lambda name: name not in plan.slow_alerts, plan.resolve_wait_seconds)
    bench.found.still_firing = sorted(_firing(bench))


def _wait_while_firing(bench: Bench, matters: Callable[[str], bool], timeout_seconds: float) -> None:
    """Return when no alert that matters fires by its last notice; a failure is noted after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while left := {name for name in _firing(bench) if matters(name)}:
        if time.monotonic() >= deadline:
            bench.found.fail(f"not resolved after {timeout_seconds:.0f} s: {', '.join(sorted(left))}")
            return
        bench.reporter.progress(f"waiting for {', '.join(sorted(left))} to resolve")
        time.sleep(1.0)


def _firing(bench: Bench) -> set[str]:
    return notices.unresolved(bench.settings.notifications_file) - {alerts.WATCHDOG}


PHASES: tuple[Phase, ...] = (
    errors_100pct,
    kill_and_restart,
    light,
    overload,
    aborts,
    hang_idle,
    hang_under_load,
    settle,
)
