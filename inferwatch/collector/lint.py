"""A collector configuration and its environment -> what is wrong with it that the collector itself accepts."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import yaml

# Values of these are bounded: a stage, a served model, a version. Everything else makes series without end.
BOUNDED_DIMENSIONS = frozenset({"rag.stage", "gen_ai.request.model", "rag.embedding.version"})
SPAN_NAME = "span.name"
PLAUSIBLE_MS = (0.01, 180_000.0)
"""Under ten microseconds or over three minutes a bound of a request's latency is a typing error."""
_VARIABLE = re.compile(r"\$\{env:(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_MS = {"ns": 1e-6, "us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4, "h": 3.6e6}
_LOOPBACK = re.compile(r"^(localhost|127\.[0-9.]+|\[::1\])(:|$)")


def expanded(text: str, environ: Mapping[str, str]) -> str:
    """*text* with its ``${env:NAME:-default}`` filled in; other sources (``${file:…}``) stay as they are."""
    return _VARIABLE.sub(lambda m: environ.get(m["name"]) or (m["default"] or ""), text)


def faults(text: str, environ: Mapping[str, str], *, container: bool) -> list[str]:
    """
    Return one line a fault: key path, value and mend; empty for a good one.

    In a *container* what listens on loopback is not reached by anybody.
    """
    config = yaml.safe_load(expanded(text, environ))
    if not isinstance(config, dict):
        return ["the file is no mapping; restore it from git"]
    return [
        *(_listening(config) if container else ()),
        *_span_metrics(config),
        *_pprof(config),
    ]


def milliseconds(buckets: list[Any]) -> list[float]:
    """Bounds in Go's notation ("2500us", "1m30s") as milliseconds; ValueError for one that is none."""
    return [_ms(str(bucket)) for bucket in buckets]


def _ms(text: str) -> float:
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"{text!r} is no duration; write for example 5ms")
    return round(sum(float(number) * _MS[unit] for number, unit in parts), 9)


def _listening(config: Mapping[str, Any]) -> Iterator[str]:
    for name, receiver in (config.get("receivers") or {}).items():
        if name.split("/")[0] != "otlp":
            continue
        for protocol, settings in (receiver.get("protocols") or {}).items():
            endpoint = (settings or {}).get("endpoint")
            at = f"receivers.{name}.protocols.{protocol}"
            if endpoint is None:
                yield f"{at}: no endpoint, so it listens on localhost and no other container reaches it; write 0.0.0.0:PORT"
            elif _LOOPBACK.match(endpoint):
                yield f"{at}.endpoint: {endpoint} is not reached by other containers; write 0.0.0.0:PORT"


def _span_metrics(config: Mapping[str, Any]) -> Iterator[str]:
    for name, connector in (config.get("connectors") or {}).items():
        if name.split("/")[0] not in {"span_metrics", "spanmetrics"}:
            continue
        at, connector = f"connectors.{name}", connector or {}
        if not connector.get("namespace") or (connector.get("histogram") or {}).get("unit") != "s":
            yield f"{at}: namespace and histogram.unit: s are not both given; names would change with the version"
        yield from _dimensions(at, connector)
        yield from _buckets(at, connector)


def _dimensions(at: str, connector: Mapping[str, Any]) -> Iterator[str]:
    for key in ("dimensions", "calls_dimensions"):
        for dimension in connector.get(key) or ():
            if dimension["name"] not in BOUNDED_DIMENSIONS:
                known = ", ".join(sorted(BOUNDED_DIMENSIONS))
                yield f"{at}.{key}: {dimension['name']} has values without end; only {known} are bounded"
    if SPAN_NAME not in (connector.get("exclude_dimensions") or ()):
        yield f"{at}.exclude_dimensions: {SPAN_NAME} is a dimension unless it is excluded; ids in names make series"
    if not connector.get("aggregation_cardinality_limit"):
        yield f"{at}.aggregation_cardinality_limit: not set; dimensions_cache_size is no limit"


def _buckets(at: str, connector: Mapping[str, Any]) -> Iterator[str]:
    explicit = (connector.get("histogram") or {}).get("explicit") or {}
    at = f"{at}.histogram.explicit.buckets"
    try:
        bounds = milliseconds(explicit.get("buckets") or [])
    except ValueError as error:
        yield f"{at}: {error}"
        return
    for place, (low, high) in enumerate(pairwise(bounds), start=1):
        if high <= low:
            yield (
                f"{at}: not strictly ascending between positions {place} and {place + 1}: {low:g} ms, {high:g} ms"
            )
    for place, bound in enumerate(bounds, start=1):
        if not PLAUSIBLE_MS[0] <= bound <= PLAUSIBLE_MS[1]:
            yield f"{at}: position {place} is {bound:g} ms; is a unit wrong?"


def _pprof(config: Mapping[str, Any]) -> Iterator[str]:
    for name in (config.get("service") or {}).get("extensions") or ():
        if name.split("/")[0] == "pprof":
            yield "service.extensions: pprof shows memory to whoever reaches its port; take it out"
