"""Decoded JSON of the HTTP APIs -> the frozen values of model.py; an unexpected shape is a PromError."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from inferwatch.promapi.errors import PromError
from inferwatch.promapi.model import Alert, Rule, RuleGroup, Sample, Series, Target

Json = Mapping[str, Any]
GO_ZERO_TIME = "0001-01-01T00:00:00Z"


def samples(data: Json) -> list[Sample]:
    """Result of an instant query: a vector as it is, a scalar as one sample without labels."""
    kind, result = data.get("resultType"), data.get("result")
    if kind == "scalar" and isinstance(result, list):
        return [Sample({}, float(result[0]), float(result[1]))]
    if kind != "vector" or not isinstance(result, list):
        raise PromError(f"the query gave a {kind}, not numbers; ask for a vector or a scalar")
    return [_sample(entry) for entry in result]


def series(data: Json) -> list[Series]:
    """Result of a range query: one Series for each label set."""
    kind, result = data.get("resultType"), data.get("result")
    if kind != "matrix" or not isinstance(result, list):
        raise PromError(f"the range query gave a {kind}, not a matrix")
    return [
        Series(_labels(entry), tuple((float(t), float(v)) for t, v in _floats(entry, "values")))
        for entry in result
    ]


def target(entry: Json) -> Target:
    """One entry of activeTargets."""
    labels = entry.get("labels", {})
    return Target(
        job=labels.get("job", entry.get("scrapePool", "")),
        instance=labels.get("instance", ""),
        labels=labels,
        scrape_url=entry.get("scrapeUrl", ""),
        health=entry.get("health", "unknown"),
        last_error=entry.get("lastError", ""),
        last_scrape=unix_seconds(entry.get("lastScrape")),
    )


def prometheus_alert(entry: Json) -> Alert:
    """One alert as Prometheus lists it."""
    return Alert(
        labels=entry.get("labels", {}),
        annotations=entry.get("annotations", {}),
        state=entry.get("state", ""),
        active_at=unix_seconds(entry.get("activeAt")),
        value=float(entry["value"]) if "value" in entry else None,
    )


def alertmanager_alert(entry: Json) -> Alert:
    """One alert as Alertmanager's v2 API lists it."""
    status = entry.get("status", {})
    return Alert(
        labels=entry.get("labels", {}),
        annotations=entry.get("annotations", {}),
        state=status.get("state", ""),
        active_at=unix_seconds(entry.get("startsAt")),
        fingerprint=entry.get("fingerprint", ""),
        silenced_by=tuple(status.get("silencedBy", ())),
        inhibited_by=tuple(status.get("inhibitedBy", ())),
    )


def rule_group(entry: Json) -> RuleGroup:
    """One entry of /api/v1/rules."""
    return RuleGroup(
        name=entry["name"],
        file=entry.get("file", ""),
        interval_seconds=float(entry.get("interval", 0.0)),
        rules=tuple(_rule(rule) for rule in entry.get("rules", ())),
    )


def unix_seconds(text: str | None) -> float | None:
    """RFC 3339 -> Unix seconds; None where Go's zero time or nothing stands."""
    if not text or text == GO_ZERO_TIME:
        return None
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _rule(entry: Json) -> Rule:
    return Rule(
        name=entry["name"],
        kind=entry["type"],
        query=entry.get("query", ""),
        health=entry.get("health", "unknown"),
        last_error=entry.get("lastError", ""),
        labels=entry.get("labels", {}),
        state=entry.get("state", ""),
        alerts=tuple(prometheus_alert(alert) for alert in entry.get("alerts") or ()),
        evaluation_seconds=float(entry.get("evaluationTime", 0.0)),
    )


def _sample(entry: Json) -> Sample:
    timestamp, value = _floats(entry, "value")
    return Sample(_labels(entry), float(timestamp), float(value))


def _labels(entry: Json) -> Mapping[str, str]:
    labels: Mapping[str, str] = entry.get("metric", {})
    return labels


def _floats(entry: Json, key: str) -> Any:
    if key not in entry:
        raise PromError(
            f"series {dict(_labels(entry))} is a native histogram; take histogram_quantile or a rate of it"
        )
    return entry[key]
