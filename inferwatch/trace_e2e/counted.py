"""Prometheus -> what it holds of spans: calls, seconds and buckets by stage, vLLM's stages, exemplars."""

import time
from collections import defaultdict

from inferwatch.promapi import Prometheus
from inferwatch.trace_e2e.claims import Key, Measured
from slo.names import rag as names

_BY = f"{names.LABEL_SPAN_STAGE}, {names.LABEL_SPAN_KIND}, {names.LABEL_SPAN_STATUS}"


def span_metrics(prometheus: Prometheus, service: str) -> dict[Key, Measured]:
    """Span metrics of one service; empty where there are none yet."""
    own = f'{{{names.LABEL_SPAN_SERVICE}="{service}"}}'

    def query(metric: str, more: str = "") -> list[tuple[Key, dict[str, str], float]]:
        found = prometheus.query(f"sum by ({_BY}{more}) ({metric}{own})")
        return [(_key(dict(one.labels)), dict(one.labels), one.value) for one in found]

    buckets: dict[Key, dict[float, float]] = defaultdict(dict)
    for key, labels, value in query(f"{names.SPAN_DURATION}_bucket", ", le"):
        buckets[key][float(labels["le"])] = value
    sums = {key: value for key, _, value in query(f"{names.SPAN_DURATION}_sum")}
    return {
        key: Measured(value, sums.get(key, -1.0), buckets[key]) for key, _, value in query(names.SPAN_CALLS)
    }


def engine_stages(prometheus: Prometheus) -> dict[str, tuple[float, float]]:
    """Count and sum of each stage of vLLM's own spans."""
    found = {
        part: {
            one.labels["stage"]: one.value
            for one in prometheus.query(f"sum by (stage) ({names.ENGINE_STAGE}_{part})")
        }
        for part in ("count", "sum")
    }
    return {stage: (count, found["sum"].get(stage, -1.0)) for stage, count in found["count"].items()}


def exemplars(prometheus: Prometheus, since: float) -> list[tuple[str, str]]:
    """Stage and trace id of each exemplar of the service's stages since then (Unix seconds)."""
    query = f'{names.SPAN_DURATION}_bucket{{{names.LABEL_SPAN_STAGE}!=""}}'
    params = [("query", query), ("start", f"{since:.0f}"), ("end", f"{time.time():.0f}")]
    answer = prometheus.json("GET", "/api/v1/query_exemplars", params)
    return [
        (series["seriesLabels"][names.LABEL_SPAN_STAGE], one["labels"]["trace_id"])
        for series in answer["data"]
        for one in series["exemplars"]
    ]


def _key(labels: dict[str, str]) -> Key:
    failed = labels.get(names.LABEL_SPAN_STATUS) == names.STATUS_ERROR
    return Key(labels.get(names.LABEL_SPAN_STAGE, ""), labels[names.LABEL_SPAN_KIND], failed)
