"""A row of RAG services or collectors -> the most seconds from its fault to a true condition, by slo.yaml's numbers.

A ratio or a quantile over a window crosses when enough of the window is new; all is bounded for full windows. What is
read from spans comes later than what a service counts itself: spans wait to be sent, and for the connector's flush.
"""

from inferwatch.scenarios.node_theory import START_SECONDS, Bound, NoTheory, share_of
from inferwatch.scenarios.rag_faults import FLOOD_MIB_PER_SECOND
from inferwatch.scenarios.row import Expected, Row
from slo.names import alerts
from slo.names import rag as names
from slo.rag import Stage
from slo.spec import Spec

SENT_EVERY_SECONDS = 5.0
"""OpenTelemetry's own default; the collector's batch of 0.2 s is rounded into the flush."""
DISK_QUEUE_SECONDS = 2.0
"""A batch for the backend, and the try that fails."""


def _scraped(spec: Spec) -> float:
    return float(spec.intervals.scrape_seconds)


def _in_spans(spec: Spec) -> float:
    """A request that has ended is in the span metrics that Prometheus holds: sent, flushed as often as scraped, read."""
    return SENT_EVERY_SECONDS + 2 * _scraped(spec)


def _stage(spec: Spec, expected: Expected) -> Stage:
    wanted = expected.labels.get(names.LABEL_STAGE, names.STAGE_REQUEST)
    return next(one for one in spec.rag.stages if one.id == wanted)


def _rate(expected: Expected) -> float:
    if not expected.events_per_second:
        raise NoTheory(f"{expected.alert}: the row does not say how many come a second")
    return expected.events_per_second


def _down(spec: Spec, row: Row, expected: Expected) -> float:
    return _scraped(spec) + spec.intervals.scrape_timeout_seconds


def _requests_failing(spec: Spec, row: Row, expected: Expected) -> float:
    failing = spec.states.failing
    share = share_of(failing.min_error_ratio, 0.0, expected.level)
    enough = failing.min_bad_events / (_rate(expected) * expected.level)
    return max(failing.window * share, enough) + _scraped(spec)


def _slow(spec: Spec, row: Row, expected: Expected) -> float:
    """*level* is how long such a stage takes: the first slow one is seen when it ends."""
    if expected.level <= _stage(spec, expected).threshold_seconds:
        raise NoTheory(f"{expected.alert}: {expected.level:g} s is within the promise")
    return spec.rag.window * (1 - spec.rag.judged_quantile) + expected.level + _in_spans(spec)


def _failing(spec: Spec, row: Row, expected: Expected) -> float:
    return spec.rag.window * share_of(
        _stage(spec, expected).max_error_ratio, 0.0, expected.level
    ) + _in_spans(spec)


def _spans_missing(spec: Spec, row: Row, expected: Expected) -> float:
    """From no request at all; the window's extrapolation makes it sooner."""
    return spec.rag.min_requests / _rate(expected) + 2 * _scraped(spec)


def _pool(spec: Spec, row: Row, expected: Expected) -> float:
    """*level* is the share of callers that wait too long."""
    return spec.rag.window * share_of(1 - spec.rag.judged_quantile, 0.0, expected.level) + _scraped(spec)


def _resets(spec: Spec, row: Row, expected: Expected) -> float:
    """*level* is resets over acquisitions."""
    pool = spec.rag.pool
    share = share_of(pool.max_resets_ratio, 0.0, expected.level)
    enough = pool.min_resets / (_rate(expected) * expected.level)
    return max(spec.rag.window * share, enough) + _scraped(spec)


def _cache(spec: Spec, row: Row, expected: Expected) -> float:
    limit = spec.rag.cache.fall_to_ratio * row.cache_hit_before
    return spec.rag.window * share_of(limit, expected.healthy, expected.level) + _scraped(spec)


def _truncated(spec: Spec, row: Row, expected: Expected) -> float:
    cut = spec.rag.truncation
    return cut.window * share_of(cut.max_ratio, 0.0, expected.level) + _scraped(spec)


def _version(spec: Spec, row: Row, expected: Expected) -> float:
    """Enough requests of each, a twentieth of them slow, recorded, analysed and read."""
    enough = spec.rag.versions.min_requests / _rate(expected)
    recorded = spec.intervals.slow_evaluation_seconds + _in_spans(spec)
    return enough + recorded + spec.analysis.every + _scraped(spec)


def _network(spec: Spec, row: Row, expected: Expected) -> float:
    """*level* is what the way takes then."""
    limit = spec.rag.network.max_mean_seconds
    return spec.rag.window * share_of(limit, expected.healthy, expected.level) + _in_spans(spec)


def _refused(spec: Spec, row: Row, expected: Expected) -> float:
    """The collector has started again and two scrapes saw it refuse."""
    return START_SECONDS + 2 * _scraped(spec)


def _lost(spec: Spec, row: Row, expected: Expected) -> float:
    """As above, once a trace was judged and its batch was tried."""
    return _refused(spec, row, expected) + spec.traces.settle + DISK_QUEUE_SECONDS


def _queue(spec: Spec, row: Row, expected: Expected) -> float:
    full = spec.traces.queue_mib * spec.rag.collector.max_queue_ratio / FLOOD_MIB_PER_SECOND
    return full + spec.traces.settle + DISK_QUEUE_SECONDS + _scraped(spec)


RAG_BOUNDS: dict[str, Bound] = {
    alerts.RAG_SERVICE_DOWN: _down,
    alerts.RAG_REQUESTS_FAILING: _requests_failing,
    alerts.RAG_REQUEST_SLOW: _slow,
    alerts.RAG_STAGE_SLOW: _slow,
    alerts.RAG_STAGE_FAILING: _failing,
    alerts.RAG_SPANS_MISSING: _spans_missing,
    alerts.RAG_POOL_EXHAUSTED: _pool,
    alerts.RAG_KEEPALIVE_RESETS: _resets,
    alerts.RAG_CACHE_HIT_COLLAPSED: _cache,
    alerts.RAG_CONTEXT_TRUNCATED: _truncated,
    alerts.RAG_VERSION_WORSE: _version,
    alerts.NETWORK_SLOW: _network,
    alerts.COLLECTOR_DOWN: _down,
    alerts.SPANS_REFUSED: _refused,
    alerts.SPANS_LOST: _lost,
    alerts.SPAN_QUEUE_FILLING: _queue,
}
"""The literal list; evaluation, `for` and grouping come on top."""
