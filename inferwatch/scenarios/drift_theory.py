"""A row of embeddings -> the most seconds from its fault to a true condition, by slo.yaml's numbers.

A share of a window is crossed when so much of what came is new: of a window that is not full yet sooner, since less came
before. What detectors need is stated as such a share, and held by tests on the very vectors that the rows send.
"""

from collections.abc import Callable

from inferwatch.scenarios.drift_faults import OtherEmbeddings
from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.node_theory import START_SECONDS, NoTheory, share_of
from inferwatch.scenarios.row import Expected, Row
from slo.names import alerts
from slo.names import drift as names
from slo.spec import Spec

DRIFT_SHARE = 0.1
"""Of a window's vectors about other topics, from which the detectors together must say drift."""
SENT_SECONDS = 1.0
"""What a service tells its exporter waits so long at most."""
JUDGE_SECONDS = 1.0

Bound = Callable[[Spec, Row, Expected, float], float]
"""The last number: for how long the stage was healthy and sent before the fault."""


def part_seconds(window: float, share: float, lead: float) -> float:
    """Return seconds until *share* of what came within *window* is new, *lead* seconds of old having come before."""
    return min(window * share, lead * share / (1 - share))


def _changed(row: Row) -> tuple[Sent, Sent]:
    if row.sent is None or not isinstance(row.fault, OtherEmbeddings):
        raise NoTheory(f"{row.name}: its fault changes nothing that is sent")
    return row.sent, row.fault.after


def _seen(spec: Spec) -> float:
    """What was sent stands in a counter that Prometheus holds."""
    return SENT_SECONDS + spec.intervals.scrape_seconds


def _judged(spec: Spec) -> float:
    """What was sent is in a verdict that Prometheus holds."""
    return spec.drift.every + JUDGE_SECONDS + _seen(spec)


def _drifts(spec: Spec, after: Sent, lead: float) -> float:
    share = share_of(DRIFT_SHARE, 0.0, after.shifted)
    return part_seconds(spec.drift.window, share, lead) + _judged(spec)


def _much_slower(spec: Spec, row: Row, sli: str) -> float:
    """What the latency must be over: the upper of the two borders, times what it is held against."""
    border = max(band.up_to_ratio or 0.0 for band in spec.joint.latency_bands)
    promised = next(one.objective_seconds for one in spec.joint.latencies if one.sli == sli)
    if baseline := (row.latency_before_seconds if sli != names.SLI_RETRIEVAL else promised):
        return (1 + border) * baseline
    raise NoTheory(f"{row.name}: nothing says what its {sli} is held against")


def _is_late(spec: Spec, row: Row, expected: Expected) -> float:
    """
    *level* is how long a slow one takes. The P95 is a slow one when a twentieth of the window is.

    The engine's buckets are recorded, and then its quantile, before the table reads it; retrievals are read at once.
    """
    before, after = _changed(row)
    retrieval = after.retrieval_seconds != before.retrieval_seconds
    limit = _much_slower(spec, row, names.SLI_RETRIEVAL if retrieval else "request_duration")
    if expected.level <= limit:
        raise NoTheory(f"{expected.alert}: {expected.level:g} s is not over {limit:g} s")
    late = (1 - spec.joint.latency_quantile) * spec.latency.window + _seen(spec)
    if retrieval:
        return late
    return late + expected.level + 2 * spec.intervals.slow_evaluation_seconds


def _warning(spec: Spec, row: Row, expected: Expected, lead: float) -> float:
    """Either of the two alone."""
    _, after = _changed(row)
    return _drifts(spec, after, lead) if after.shifted else _is_late(spec, row, expected)


def _critical(spec: Spec, row: Row, expected: Expected, lead: float) -> float:
    _, after = _changed(row)
    return max(_drifts(spec, after, lead), _is_late(spec, row, expected))


def _swapped(spec: Spec, row: Row, expected: Expected, lead: float) -> float:
    return _judged(spec)


def _unknown(spec: Spec, row: Row, expected: Expected, lead: float) -> float:
    """The exporter has started again, and judges."""
    return START_SECONDS + _judged(spec)


def _rejected(spec: Spec, row: Row, expected: Expected, lead: float) -> float:
    before, after = _changed(row)
    limit = spec.drift.rejected
    share = share_of(limit.above_ratio, before.unusable_ratio, after.unusable_ratio)
    return part_seconds(limit.window, share, lead) + _seen(spec)


def _poor(spec: Spec, row: Row, expected: Expected, lead: float) -> float:
    before, after = _changed(row)
    limit = spec.drift.retrieval
    share = share_of(limit.above_ratio, before.poor, after.poor)
    return part_seconds(limit.window, share, lead) + _seen(spec)


DRIFT_BOUNDS: dict[str, Bound] = {
    alerts.JOINT_CRITICAL: _critical,
    alerts.JOINT_WARN: _warning,
    alerts.MODEL_SWAPPED: _swapped,
    alerts.DRIFT_UNKNOWN: _unknown,
    alerts.VECTORS_REJECTED: _rejected,
    alerts.RETRIEVAL_POOR: _poor,
}
"""The literal list; evaluation, `for` and grouping come on top."""
