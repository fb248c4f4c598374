"""A row of recorded things -> the most seconds from its fault to a true condition, by the numbers that it changes.

A mean over a window crosses when enough of the window is new. Where the mean is taken of a rate over a window of its
own, what is new grows with the square of time at first (`twice_seconds`). All is bounded for full windows.
"""

from collections.abc import Callable
from math import sqrt

from inferwatch.scenarios.faults import Recorded
from inferwatch.scenarios.recorded import SLOW_STORE_SECONDS
from inferwatch.scenarios.row import Expected, Row
from inferwatch.scenarios.shown import Shown
from slo.names import alerts
from slo.spec import Spec

QUEUE_SECONDS = 60.0
"""Within which an engine that hardly steps has all its slots taken and a queue behind them."""
DRAM_RECORDED = {"idle": 0.0, "memory": 0.886}
"""Share of the memory bandwidth in the two recorded moments, by GPM."""
START_SECONDS = 10.0
"""An agent that is started again listens."""


class NoTheory(ValueError):
    """Nothing bounds the delay: the row states numbers with which the alert can never fire."""


Bound = Callable[[Spec, Row, Expected], float]


def share_of(limit: float, before: float, after: float) -> float:
    """Return the share of a window that must be new; NoTheory where it never crosses *limit*."""
    if before == after or not 0 <= (share := (limit - before) / (after - before)) < 1:
        raise NoTheory(f"from {before:g} to {after:g} never crosses {limit:g} during the fault")
    return share


def twice_seconds(window: float, share: float) -> float:
    """Return when the mean over *window* of a mean over *window* has gone that share of its way."""
    return window * (sqrt(2 * share) if share <= 0.5 else 2 - sqrt(2 * (1 - share)))


def _after(row: Row) -> Shown:
    if not isinstance(row.fault, Recorded):
        raise NoTheory(f"{row.name}: its fault changes nothing recorded")
    new, old = row.fault.after, row.shows
    return Shown(new.card or old.card, new.core or old.core, new.tenant or old.tenant, new.page or old.page)


def _seen(spec: Spec) -> float:
    """A number that the agent reads with its processes is served at the next scrape."""
    return spec.node.sampling.process_seconds + spec.intervals.scrape_seconds


def _slow(spec: Spec, row: Row, expected: Expected) -> float:
    return spec.node.sampling.slow_seconds + spec.intervals.scrape_seconds


def _xid(spec: Spec, row: Row, expected: Expected) -> float:
    return 1.0 + spec.intervals.scrape_seconds


def _unreadable(spec: Spec, row: Row, expected: Expected) -> float:
    return START_SECONDS + spec.intervals.scrape_seconds


def _held(name: str) -> Bound:
    """The clocks are held all the time: a share of the window."""

    def bound(spec: Spec, row: Row, expected: Expected) -> float:
        limit = getattr(spec.node.alerts, name)
        return float(limit.above_ratio * limit.window + 2 * spec.intervals.scrape_seconds)

    return bound


def _memory_full(spec: Spec, row: Row, expected: Expected) -> float:
    return float(spec.node.alerts.memory_nearly_full.window + _seen(spec))


def _active(shown: Shown) -> float:
    if shown.card is None or shown.card.active is None:
        raise NoTheory("the row's card states no share of time in which it is active")
    return shown.card.active


def _cpu_bound(spec: Spec, row: Row, expected: Expected) -> float:
    """The core is busy enough, and its GPU idle enough."""
    before, after, signal = row.shows, _after(row), spec.signal("cpu-binding")
    if before.core is None or after.core is None:
        raise NoTheory(f"{row.name}: no engine core")
    busy = share_of(signal.threshold, before.core.busy, after.core.busy)
    idle = share_of(spec.node.joint.gpu_idle_below_ratio, _active(before), _active(after))
    return signal.window * max(busy, idle) + _seen(spec)


def _gpu_waits(spec: Spec, row: Row, expected: Expected) -> float:
    before, after, limit = row.shows, _after(row), spec.node.alerts.gpu_waits_for_cpu
    if before.core is None or after.core is None:
        raise NoTheory(f"{row.name}: no engine core")
    share = share_of(limit.above_ratio, before.core.busy - _active(before), after.core.busy - _active(after))
    return twice_seconds(limit.window, share) + _seen(spec) + spec.intervals.slow_evaluation_seconds


def _noisy(spec: Spec, row: Row, expected: Expected) -> float:
    before, after, limits = row.shows.core, _after(row).core, spec.node.alerts
    if before is None or after is None:
        raise NoTheory(f"{row.name}: no engine core")
    waits = share_of(limits.runqueue_delay.above_ratio, before.waited, after.waited)
    others = share_of(limits.noisy_neighbour.above_ratio, before.others, after.others)
    crossed = twice_seconds(limits.noisy_neighbour.window, max(waits, others))
    return crossed + _seen(spec) + spec.intervals.slow_evaluation_seconds


def _tenant(name: str, limit_of: str) -> Bound:
    """A rate over the window, from nothing."""

    def bound(spec: Spec, row: Row, expected: Expected) -> float:
        limit, tenant = getattr(spec.node.alerts, limit_of), _after(row).tenant
        return float(limit.window * share_of(limit.above_ratio, 0.0, getattr(tenant, name)) + _seen(spec))

    return bound


def _killed(spec: Spec, row: Row, expected: Expected) -> float:
    return _seen(spec)


def _starved(spec: Spec, row: Row, expected: Expected) -> float:
    joint = spec.node.joint
    share = share_of(joint.gpu_idle_below_ratio, _active(row.shows), _active(_after(row)))
    return max(QUEUE_SECONDS, joint.window * share + _seen(spec))


def _risen(spec: Spec, row: Row) -> float:
    """
    The P95 is there after a twentieth of the window, and one evaluation more until it is read; a past to compare it
    with, when one window has passed.
    """
    joint, slow = spec.node.joint, spec.intervals.slow_evaluation_seconds
    late = (1 - spec.joint.latency_quantile) * joint.window + spec.intervals.scrape_seconds
    return slow + max(late, joint.window + 2 * slow - row.lead_seconds)


def _memory_bound(spec: Spec, row: Row, expected: Expected) -> float:
    before, after = row.shows.card, _after(row).card
    if before is None or after is None:
        raise NoTheory(f"{row.name}: no card")
    share = share_of(
        spec.node.bound.saturated_from_ratio, DRAM_RECORDED[before.frame], DRAM_RECORDED[after.frame]
    )
    return max(_risen(spec, row), spec.node.joint.window * share + _seen(spec))


def _throttled(spec: Spec, row: Row, expected: Expected) -> float:
    joint = spec.node.joint
    held = joint.throttled_from_ratio * joint.window + 2 * spec.intervals.scrape_seconds
    return max(_risen(spec, row), held)


def _preempted(spec: Spec, row: Row, expected: Expected) -> float:
    share = share_of(spec.signal("preemptions").threshold, 0.0, expected.level)
    return spec.node.joint.window * share + 2 * spec.intervals.scrape_seconds


def _mixed(spec: Spec, row: Row, expected: Expected) -> float:
    """Bounds are counted every minute."""
    return float(spec.intervals.scrape_seconds + spec.intervals.resample_seconds)


def _off_scale(spec: Spec, row: Row, expected: Expected) -> float:
    intervals = spec.intervals
    share = share_of(spec.latency.off_scale_ratio, 0.0, expected.level)
    return spec.latency.window * share + intervals.scrape_seconds + intervals.slow_evaluation_seconds


def _rules_slow(spec: Spec, row: Row, expected: Expected) -> float:
    """A first evaluation begins and lasts; two scrapes see the count of missed ones rise."""
    return spec.intervals.evaluation_seconds + 2 * SLOW_STORE_SECONDS + 2 * spec.intervals.scrape_seconds


BOUNDS: dict[str, Bound] = {
    alerts.GPU_LOST: _xid,
    alerts.GPU_UNREADABLE: _unreadable,
    alerts.GPU_XID_HARDWARE: _xid,
    alerts.GPU_XID_APPLICATION: _xid,
    alerts.GPU_ECC_UNCORRECTED: _slow,
    alerts.GPU_ROW_REMAP_FAILED: _slow,
    alerts.GPU_ROW_REMAP_PENDING: _slow,
    alerts.GPU_THERMAL_THROTTLED: _held("thermal_throttle"),
    alerts.GPU_POWER_BRAKED: _held("power_brake"),
    alerts.GPU_POWER_CAPPED: _held("power_cap"),
    alerts.GPU_MEMORY_NEARLY_FULL: _memory_full,
    alerts.ENGINE_CPU_BOUND: _cpu_bound,
    alerts.GPU_WAITS_FOR_CPU: _gpu_waits,
    alerts.NOISY_NEIGHBOUR: _noisy,
    alerts.TENANT_CPU_THROTTLED: _tenant("throttled", "cpu_throttled"),
    alerts.TENANT_MEMORY_PRESSURE: _tenant("stalled", "memory_pressure"),
    alerts.TENANT_OUT_OF_MEMORY: _killed,
    alerts.ENGINE_STARVED: _starved,
    alerts.LATENCY_MEMORY_BOUND: _memory_bound,
    alerts.LATENCY_THROTTLED: _throttled,
    alerts.PREEMPTIONS_MEMORY_FULL: _preempted,
    alerts.MIXED_BUCKETS: _mixed,
    alerts.LATENCY_OFF_SCALE: _off_scale,
    alerts.RULE_EVALUATION_SLOW: _rules_slow,
}
"""The literal list; evaluation, `for` and grouping come on top."""
