"""Prometheus -> the windows of each service and model: what ran, how fast requests came, what was kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from inferwatch.promapi import Prometheus
from slo.names import engine, labels, records

Key = tuple[str, str]
"""(service, model)."""

BY = f"{labels.SERVICE}, {labels.MODEL}"


@dataclass(frozen=True)
class Moment:
    """One window. Batch and rate are means per engine; None: not known in this window."""

    batch_requests: float
    requests_per_second: float
    kept: bool
    prompt_tokens: float | None
    cache_hit_ratio: float | None
    latency_seconds: float | None


def _queries(window: str) -> Mapping[str, str]:
    def ratio(top: str, bottom: str) -> str:
        return f"sum by ({BY}) (increase({top}[{window}])) / sum by ({BY}) (increase({bottom}[{window}]))"

    prompts = engine.REQUEST_PROMPT_TOKENS
    p95 = f'{records.LATENCY_QUANTILE}{{sli="request_duration",quantile="0.95"}}'
    broken = (
        f"{records.BAD_EVENTS_MINUTE} / {records.TOTAL_EVENTS_MINUTE}"
        f" > bool on ({labels.SLOTH_ID}) group_left () {records.ERROR_BUDGET}"
    )
    return {
        "batch": f"avg by ({BY}) (avg_over_time({engine.REQUESTS_RUNNING}[{window}]))",
        "rate": f"avg by ({BY}) (avg_over_time({records.INSTANCE_REQUESTS}[{window}]))",
        "broken": f"max by ({BY}) ({broken})",
        "prompt": ratio(f"{prompts}_sum", f"{prompts}_count"),
        "hit": ratio(engine.PREFIX_CACHE_HIT_TOKENS_TOTAL, engine.PREFIX_CACHE_QUERIED_TOKENS_TOTAL),
        "latency": f"max by ({BY}) ({p95})",
    }


def read(
    prometheus: Prometheus, *, end: float, lookback_seconds: int, window_seconds: int
) -> dict[Key, list[Moment]]:  # fmt: skip
    """Return the windows of the last *lookback_seconds* by service and model.

    A window without requests, or whose promises nobody judged, is not there: it says nothing. Raises
    PromError when Prometheus cannot be asked.
    """
    end = end // window_seconds * window_seconds
    found: dict[str, dict[Key, dict[float, float]]] = {}
    for name, expr in _queries(f"{window_seconds}s").items():
        series = prometheus.query_range(
            expr, start=end - lookback_seconds + window_seconds, end=end, step_seconds=window_seconds
        )
        found[name] = {
            (s.labels.get(labels.SERVICE, ""), s.labels.get(labels.MODEL, "")): {
                t: v for t, v in s.points if math.isfinite(v)
            }
            for s in series
        }
    return {key: _moments(key, found) for key in sorted(found["batch"])}


def _moments(key: Key, found: Mapping[str, Mapping[Key, Mapping[float, float]]]) -> list[Moment]:
    of = {name: values.get(key, {}) for name, values in found.items()}
    return [
        Moment(
            batch_requests=batch,
            requests_per_second=of["rate"][at],
            kept=of["broken"][at] == 0,
            prompt_tokens=of["prompt"].get(at),
            cache_hit_ratio=of["hit"].get(at),
            latency_seconds=of["latency"].get(at),
        )
        for at, batch in sorted(of["batch"].items())
        if of["rate"].get(at, 0.0) > 0 and at in of["broken"]
    ]
