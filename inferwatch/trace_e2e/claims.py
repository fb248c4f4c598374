"""Spans of traces, what clients saw and what Prometheus counted -> whether they agree, each as a sentence."""

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from inferwatch.trace_e2e.jaeger import Span

SERVICES = {"client", "rag", "vllm"}
STAGES = ("receive", "embedding", "retrieval", "rerank", "assemble", "generate", "respond")
ENGINE_SPAN = "llm_request"


class Key(NamedTuple):
    """What the span metrics of one service are split by: *kind* as in Prometheus, *stage* "" for the request."""

    stage: str
    kind: str
    failed: bool


@dataclass(frozen=True)
class Measured:
    """
    Spans of one key: how many, their seconds together, and cumulative counts by upper bound.

    *at_bound*: spans whose microseconds are a bound exactly. Jaeger cuts nanoseconds off, so that they may lie above.
    """

    count: float
    seconds: float
    buckets: Mapping[float, float]
    at_bound: Mapping[float, int] = field(default_factory=dict)


def disconnected(spans: Sequence[Span], client_span: str) -> str:
    """Why the spans are not the one whole trace of a request; "" when they are."""
    by_id = {span.span_id: span for span in spans}
    if len(by_id) < len(spans):
        return "a span stands twice"
    if lost := [span.name for span in spans if span.parent and span.parent not in by_id]:
        return f"{lost[0]} has a parent that is not in the trace"
    roots = [span for span in spans if not span.parent]
    if [root.span_id for root in roots] != [client_span]:
        return f"roots are {[root.name for root in roots]}, not the client's span alone"
    if (services := {span.service for span in spans}) != SERVICES:
        return f"services are {sorted(services)}"
    (server, *more) = [span for span in spans if span.service == "rag" and span.parent == client_span]
    if more or sorted(s.stage for s in spans if s.stage and s.parent == server.span_id) != sorted(STAGES):
        return f"stages are {sorted(s.stage for s in spans if s.stage)}"
    (generate,) = [span for span in spans if span.stage == "generate"]
    engine = [span.parent for span in spans if span.service == "vllm" and span.name == ENGINE_SPAN]
    if engine != [generate.span_id]:
        return f"{len(engine)} {ENGINE_SPAN} spans, under {engine}; wanted is one under the generate stage"
    return ""


def stage_sum_seconds(spans: Iterable[Span]) -> float:
    """The request's stages, one after the other."""
    return sum(span.duration_us for span in spans if span.stage) / 1e6


def apart(found: float, seen: float) -> float:
    """How far *found* is from *seen*, as a part of *seen*."""
    return abs(found - seen) / seen


def measure(spans: Iterable[Span], service: str, bounds: Sequence[float]) -> dict[Key, Measured]:
    """What span metrics must say of *service*'s spans, counted from the spans themselves."""
    durations: dict[Key, list[float]] = defaultdict(list)
    for span in spans:
        if span.service == service:
            kind = f"SPAN_KIND_{str(span.tags.get('span.kind', 'internal')).upper()}"
            durations[Key(span.stage, kind, span.failed)].append(span.duration_us / 1e6)
    return {key: _measured(some, bounds) for key, some in durations.items()}


def _measured(seconds: Sequence[float], bounds: Sequence[float]) -> Measured:
    upper = [*bounds, math.inf]
    per_bucket = Counter(bisect_left(upper, one) for one in seconds)
    total, cumulative = 0, {}
    for place, bound in enumerate(upper):
        total += per_bucket[place]
        cumulative[bound] = float(total)
    micros = Counter(round(one * 1e6) for one in seconds)
    at_bound = {bound: n for bound in bounds if (n := micros[round(bound * 1e6)])}
    return Measured(float(len(seconds)), sum(seconds), cumulative, at_bound)


def differing(wanted: Mapping[Key, Measured], counted: Mapping[Key, Measured]) -> list[str]:
    """
    Where metrics and spans differ: counts and buckets must be equal.

    Jaeger cuts to microseconds: sums may differ by one a span, and a span that is a bound then may lie above it.
    """
    found = [f"{key}: in spans and metrics only once" for key in set(wanted) ^ set(counted)]
    for key in set(wanted) & set(counted):
        ours, theirs = wanted[key], counted[key]
        if ours.count != theirs.count:
            found.append(f"{key}: {ours.count:g} spans, {theirs.count:g} counted")
        if abs(ours.seconds - theirs.seconds) > 1e-6 * ours.count + 1e-9:
            found.append(f"{key}: {ours.seconds:.6f} s in spans, {theirs.seconds:.6f} s counted")
        apart_at = [
            bound
            for bound, count in ours.buckets.items()
            if not 0 <= count - theirs.buckets.get(bound, math.inf) <= ours.at_bound.get(bound, 0)
        ]
        if apart_at:
            found.append(f"{key}: buckets differ at {apart_at[:3]}")
    return found


_ENGINE_ATTRIBUTES = {
    "queue": "gen_ai.latency.time_in_queue",
    "prefill": "gen_ai.latency.time_in_model_prefill",
    "decode": "gen_ai.latency.time_in_model_decode",
    "ttft": "gen_ai.latency.time_to_first_token",
    "e2e": "gen_ai.latency.e2e",
}


def differing_engine(spans: Iterable[Span], counted: Mapping[str, tuple[float, float]]) -> list[str]:
    """Where the engine's stage metrics differ from the clock readings on its spans."""
    readings = [span.tags for span in spans if span.name == ENGINE_SPAN]
    found = []
    for stage, attribute in _ENGINE_ATTRIBUTES.items():
        values = [float(tags[attribute]) for tags in readings if attribute in tags]
        count, seconds = counted.get(stage, (0.0, 0.0))
        if len(values) != count or not math.isclose(sum(values), seconds, rel_tol=1e-6, abs_tol=1e-6):
            found.append(
                f"vLLM {stage}: {len(values)} spans and {sum(values):.6f} s; counted {count:g} and {seconds:.6f} s"
            )
    return found
