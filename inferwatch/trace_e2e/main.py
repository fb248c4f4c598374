"""The end-to-end run of traces: phases, and what held in each."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from inferwatch.loop import notices
from inferwatch.promapi import Prometheus
from inferwatch.promapi.errors import PromError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.trace_e2e import claims, leaks
from inferwatch.trace_e2e.careless import send
from inferwatch.trace_e2e.client import Asked, Traffic
from inferwatch.trace_e2e.counted import engine_stages, exemplars, span_metrics
from inferwatch.trace_e2e.faults import clear, slow
from inferwatch.trace_e2e.jaeger import Jaeger, Span
from inferwatch.trace_e2e.parts import PASSAGES, RAG, WORDS, Stand
from inferwatch.trace_e2e.plan import Plan
from slo.names import alerts
from slo.names import rag as names

Trace = list[Span]


@dataclass
class Run:
    """What phases share and add to. *traces*: by trace id, as Jaeger has them."""

    plan: Plan
    stand: Stand
    traffic: Traffic
    prometheus: Prometheus
    jaeger: Jaeger
    began: float
    asked: list[Asked] = field(default_factory=list)
    traces: dict[str, Trace] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, what: str) -> None:
        """Note whether a claim holds."""
        self.stand.reporter.say(f"  {'ok  ' if holds else 'FAIL'} {what}")
        if not holds:
            self.failures.append(what)

    def wait(self, what: str, condition: Callable[[], bool]) -> float | None:
        """Seconds until the condition held; a failure when it did not within the plan's patience."""
        began = time.monotonic()
        while time.monotonic() - began < self.plan.patience:
            if condition():
                seconds = round(time.monotonic() - began, 1)
                self.expect(True, f"{what} ({seconds} s)")
                return seconds
            time.sleep(0.5)
        self.expect(False, f"{what}: not within {self.plan.patience:g} s")
        return None

    def whole(self, asked: Sequence[Asked]) -> list[str]:
        """Fetch traces that are not held yet; those that are not whole so far, each with why."""
        missing = []
        for one in asked:
            if one.trace_id not in self.traces:
                spans = self.jaeger.trace(one.trace_id)
                why = claims.disconnected(spans, one.span_id) if spans else "not there"
                if why:
                    missing.append(f"{one.trace_id}: {why}")
                else:
                    self.traces[one.trace_id] = spans
        return missing

    def wait_whole(self, what: str, asked: Sequence[Asked]) -> None:
        """All of *asked* become one connected trace each."""
        left: list[str] = []

        def all_there() -> bool:
            left[:] = self.whole(asked)
            return not left

        self.wait(what, all_there)
        for one in left[:3]:
            self.stand.reporter.say(f"       {one}")

    def firing(self) -> set[tuple[str, str]]:
        """Name and stage of every alert that fired at any time of the run."""
        seconds = int(time.time() - self.began) + 5
        found = self.prometheus.query(f'max_over_time(ALERTS{{alertstate="firing"}}[{seconds}s])')
        return {(one.labels["alertname"], one.labels.get("stage", "")) for one in found}


def steady(run: Run) -> None:
    """Traced requests, half of them streams: one connected trace each, whose stages add up to what the client saw."""
    count = run.plan.requests
    asked = run.traffic.ask(count)
    run.asked += asked
    run.expect([one.status for one in asked] == [200] * count, f"{count} requests are answered with 200")
    run.wait_whole(f"each of {count} requests is one connected trace over client, service and vLLM", asked)
    parts = [
        claims.apart(claims.stage_sum_seconds(run.traces[one.trace_id]), one.seconds)
        for one in asked
        if one.trace_id in run.traces
    ]
    limit = run.plan.stage_sum_ratio
    within = sum(part <= limit for part in parts)
    run.facts["e2e_median_s"] = round(median(one.seconds for one in asked), 3)
    run.facts["stage_sum_apart"] = {
        "median": round(median(parts), 4), "worst": round(max(parts), 4), "within": within, "of": count,
    }  # fmt: skip
    run.expect(
        within == count,
        f"stages of each request add up to within {limit:.0%} of its client's time: {within} of {count}, "
        f"median {median(parts):.2%}, worst {max(parts):.2%} apart",
    )


def counted(run: Run) -> None:
    """Metrics made of spans are equal to the spans: counts, buckets, sums; of the service and of vLLM."""
    spans = [span for trace in run.traces.values() for span in trace]
    wanted = claims.measure(spans, RAG, names.BOUNDS_SECONDS)
    left: list[str] = []

    def equal() -> bool:
        left[:] = claims.differing(wanted, span_metrics(run.prometheus, RAG))
        left.extend(claims.differing_engine(spans, engine_stages(run.prometheus)))
        return not left

    total = sum(one.count for one in wanted.values())
    run.wait(f"span metrics equal {total:g} spans of the service and vLLM's own clock readings", equal)
    for one in left[:5]:
        run.stand.reporter.say(f"       {one}")
    run.facts["spans_compared"] = int(total)


def linked(run: Run) -> None:
    """A heatmap's cell leads to a trace: exemplars of every stage name traces that Jaeger has."""
    found = exemplars(run.prometheus, run.began)
    stages = {stage for stage, _ in found}
    run.expect(stages >= set(claims.STAGES), f"every stage has exemplars: {len(found)} of {sorted(stages)}")
    lost = [trace for _, trace in found if trace not in run.traces]
    run.expect(not lost, f"each exemplar's trace is in Jaeger; not: {lost[:3]}")


def slowed(run: Run) -> None:
    """One stage is slowed: that stage's alert, delivered, and no other's."""
    plan = run.plan
    run.expect(run.firing() == set(), f"nothing has fired so far: {sorted(run.firing())}")
    mine = {(alerts.RAG_STAGE_SLOW, plan.slowed)}
    with run.traffic.flowing() as asked:
        slow(run.stand.settings.url("rag"), plan.slowed, plan.delay)

        def told() -> bool:
            return any(
                (one.alert, one.labels.get("stage"), one.status)
                == (alerts.RAG_STAGE_SLOW, plan.slowed, "firing")
                for one in notices.read(run.stand.settings.notifications_file)
            )

        run.facts["slow_to_notification_s"] = run.wait(f"slow {plan.slowed} is delivered as an alert", told)
        time.sleep(plan.slow_on)
        run.expect(run.firing() == mine, f"that alert fired and no other: {sorted(run.firing())}")
        clear(run.stand.settings.url("rag"))
        quiet = f'ALERTS{{alertname="{alerts.RAG_STAGE_SLOW}",alertstate="firing"}}'
        run.facts["calm_s"] = run.wait("quick again, it ends", lambda: not run.prometheus.query(quiet))
    run.asked += asked
    run.expect(run.firing() == mine, f"and no other came later: {sorted(run.firing())}")
    told_all = {
        (n.alert, n.labels.get("stage", "")) for n in notices.read(run.stand.settings.notifications_file)
    }
    run.expect(
        told_all - {(alerts.WATCHDOG, "")} == mine, f"notified was that and no other: {sorted(told_all)}"
    )


def outage(run: Run) -> None:
    """Jaeger is gone for a minute of traffic: no sampled trace is lost."""
    run.stand.end("jaeger")
    began = time.monotonic()
    with run.traffic.flowing() as asked:
        while time.monotonic() - began < run.plan.outage:
            time.sleep(0.2)
        run.stand.begin("jaeger")
        run.stand.ready("jaeger")
    gone = round(time.monotonic() - began, 1)
    run.asked += asked
    run.facts["outage"] = {"seconds": gone, "traces": len(asked)}
    run.wait_whole(f"all {len(asked)} traces of {gone} s without Jaeger are there, whole", asked)
    totals = f"sum({names.GENERATION_CACHED_TOKENS}) / (sum({names.GENERATION_PROMPT_TOKENS}) > 0)"
    run.facts["prompt_tokens_cached_ratio"] = run.prometheus.value(totals)
    old = [one.trace_id for one in run.asked[:5]]
    run.expect(all(run.jaeger.trace(one) for one in old), "and traces from before it still are")


def silent(run: Run) -> None:
    """No text of a question, a passage or an answer is in any backend, nor what a careless instrumentation sends."""
    settings = run.stand.settings
    careless = send(settings.url("otlp-http"))
    run.wait("a careless service's span arrives", lambda: bool(run.jaeger.trace(careless)))
    run.wait_whole("the traces of the slow phase are whole too", run.asked)
    wanted = [*leaks.needles(run.asked, _passages()), *leaks.CARELESS_NEEDLES]
    known = run.asked[0].trace_id
    seen = leaks.search(_texts(run, careless), wanted)
    run.facts["searched"] = {"places": seen.places, "bytes": seen.size_bytes, "needles": len(wanted)}
    run.expect(
        not seen.hits,
        f"none of {len(wanted)} pieces of questions, answers, passages and secrets is in {seen.size_bytes} bytes; "
        f"{seen.hits[:5]}",
    )
    there = leaks.search(_texts(run, careless), [known, careless]).hits
    run.expect(len(there) > 1, f"the search does find what is there, trace ids: {len(there)} times")


def _texts(run: Run, careless: str) -> Iterator[tuple[str, bytes]]:
    """Everything that any backend answers or keeps, and every log."""
    settings = run.stand.settings
    yield from leaks.file_texts([settings.data_dir, settings.logs_dir])
    yield from leaks.prometheus_texts(settings.url("prometheus"), run.began, time.time())
    for name in ("collector-spans", "collector-self", RAG):
        yield f"{name} /metrics", leaks.get(f"{settings.url(name)}/metrics")
    yield "alertmanager", leaks.get(f"{settings.url('alertmanager')}/api/v2/alerts")
    yield "notifications", settings.notifications_file.read_bytes()
    for one in [*(asked.trace_id for asked in run.asked), careless]:
        yield f"jaeger {one}", leaks.get(f"{settings.url('jaeger')}/api/traces/{one}")


PHASES = (steady, counted, linked, slowed, outage, silent)


def _passages() -> list[str]:
    from rag.config import Corpus
    from rag.corpus import load

    return [one.text for one in load(Corpus(passages=PASSAGES, words=WORDS))]


def questions() -> list[str]:
    """One of each passage: about its title, with words of it."""
    from rag.config import Corpus
    from rag.corpus import load

    return [
        f"What does the reference say about {one.title}, where it reads {' '.join(one.text.split()[4:14])} ?"
        for one in load(Corpus(passages=PASSAGES, words=WORDS))
    ]


def run(
    settings: Settings, reporter: Reporter, plan: Plan, phases: Sequence[Callable[[Run], None]] = PHASES
) -> dict[str, Any]:
    """Run the phases; all that was started is ended again. `passed` is true only when every claim held."""
    began, wall = time.monotonic(), time.time()
    with (
        Stand(settings, plan, reporter) as stand,
        Prometheus(settings.url("prometheus")) as prometheus,
        Jaeger(settings.url("jaeger"), timeout_seconds=30.0) as jaeger,
    ):
        ready = round(time.monotonic() - began, 1)
        traffic = Traffic(settings.url("rag"), settings.url("otlp-http"), questions(), plan.workers)
        held = Run(plan, stand, traffic, prometheus, jaeger, wall)
        try:
            for phase in phases:
                reporter.say(f"— {phase.__name__}: {(phase.__doc__ or '').splitlines()[0]}")
                try:
                    phase(held)
                except PromError as error:
                    held.expect(False, f"{phase.__name__}: {error}")
        finally:
            traffic.end()
    return {
        "compressed": f"windows of {plan.window} s stand for 5 min; scrape and evaluation every second",
        "thresholds_s": dict(plan.thresholds),
        "requests": len(held.asked),
        "ready_s": ready,
        **held.facts,
        "seconds": round(time.monotonic() - began, 1),
        "failures": held.failures,
        "passed": not held.failures,
    }
