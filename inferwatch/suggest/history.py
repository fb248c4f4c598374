"""A Prometheus -> how many requests each SLI kept within each bound, in all and hour by hour.

Reads our canonical series, or vLLM's own where somebody else's Prometheus has scraped them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from inferwatch.promapi import Prometheus
from inferwatch.promapi.model import Labels
from slo.names import engine

HOUR_SECONDS = 3600.0
PROBES = 400
# SLI of slo.yaml -> its histogram under our name, then under vLLM's, newest first.
LATENCY: Mapping[str, tuple[str, ...]] = {
    "request_duration": (engine.REQUEST_DURATION_SECONDS, "vllm:e2e_request_latency_seconds"),
    "time_to_first_token": (engine.TIME_TO_FIRST_TOKEN_SECONDS, "vllm:time_to_first_token_seconds"),
    "time_per_output_token": (
        engine.TIME_PER_OUTPUT_TOKEN_SECONDS,
        "vllm:request_time_per_output_token_seconds",
        "vllm:time_per_output_token_seconds",
    ),
}
# Answers with code class and handler: metric, label of the class.
HTTP = ((engine.HTTP_REQUESTS_TOTAL, engine.LABEL_CODE), ("http_requests_total", "status"))


@dataclass(frozen=True)
class Span:
    """Requests of one stretch of time: *within* has the count at most each bound in seconds."""

    total: float
    within: Mapping[float, float]

    def bad(self, bound: float) -> float:
        """Requests over *bound*."""
        return self.total - self.within[bound]


@dataclass(frozen=True)
class LatencyHistory:
    """One SLI: what it was read from, the whole history, and its hours."""

    sli: str
    source: str
    whole: Span
    hours: tuple[Span, ...]


@dataclass(frozen=True)
class Answers:
    """Requests answered with 2xx or 5xx, and those answered with 5xx, in all and hour by hour."""

    source: str
    total: float
    failed: float
    hours: tuple[tuple[float, float], ...]


def length_seconds(client: Prometheus, selector: str, now: float, most_seconds: float) -> float | None:
    """How far back any SLI's histogram goes, at most *most_seconds*; None where there is none."""
    names = "|".join(f"{name}_count" for found in LATENCY.values() for name in found)
    expr = f'count({{__name__=~"{names}"{_and(selector)}}})'
    start, end, step = now - most_seconds, now, max(1.0, most_seconds / PROBES)
    # First where it begins to one step, then within that step: a month's step is longer than a young history.
    length = None
    for _ in range(2):
        found = client.query_range(expr, start=start, end=end, step_seconds=step)
        if not found:
            break
        first = found[0].points[0][0]
        length = min(most_seconds, now - first + step)
        start, end, step = max(start, first - step), first, max(1.0, step / PROBES)
    return length


def latency(client: Prometheus, sli: str, selector: str, now: float, seconds: float) -> LatencyHistory | None:
    """The history of one SLI over the last *seconds*, None where no histogram of it has any."""
    for name in LATENCY[sli]:
        whole = _span(client, name, selector, now, seconds)
        if whole is not None:
            hours = [_span(client, name, selector, at, HOUR_SECONDS) for at in _hours(now, seconds)]
            return LatencyHistory(sli, name, whole, tuple(h for h in hours if h is not None))
    return None


def answers(
    client: Prometheus, handlers: Sequence[str], selector: str, now: float, seconds: float
) -> Answers | None:
    """Answers of the inference handlers over the last *seconds*, None where nothing counts them."""
    for name, label in HTTP:
        chosen = f'{{handler=~"{"|".join(handlers)}",{label}=~"2..|5.."{_and(selector)}}}'
        totals = _by(client, f"sum by ({label}) (increase({name}{chosen}[{seconds:.0f}s]))", label, now)
        if sum(totals.values()):
            hours = [
                _by(client, f"sum by ({label}) (increase({name}{chosen}[{HOUR_SECONDS:.0f}s]))", label, at)
                for at in _hours(now, seconds)
            ]
            pairs = tuple((sum(h.values()), _failed(h)) for h in hours if sum(h.values()))
            return Answers(name, sum(totals.values()), _failed(totals), pairs)
    return None


def _failed(totals: Mapping[str, float]) -> float:
    return sum(count for code, count in totals.items() if code.startswith("5"))


def _by(client: Prometheus, query: str, label: str, at: float) -> dict[str, float]:
    return {s.labels.get(label, ""): s.value for s in client.query(query, at=at) if s.value > 0}


def _span(client: Prometheus, name: str, selector: str, at: float, seconds: float) -> Span | None:
    inner = f"{name}_bucket{{{selector}}}[{seconds:.0f}s]"
    found = {_bound(s.labels): s.value for s in client.query(f"sum by (le) (increase({inner}))", at=at)}
    total = found.pop(math.inf, 0.0)
    return Span(total, dict(sorted(found.items()))) if total > 0 else None


def _bound(labels: Labels) -> float:
    return math.inf if labels["le"] == "+Inf" else float(labels["le"])


def _hours(now: float, seconds: float) -> list[float]:
    """Ends of whole hours that the history holds; a shorter one is one hour."""
    return [now - n * HOUR_SECONDS for n in range(max(1, int(seconds // HOUR_SECONDS)))]


def _and(selector: str) -> str:
    return f",{selector}" if selector else ""
