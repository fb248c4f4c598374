"""An alert -> how soon theory allows its notification after the fault; the failure matrix compares with it."""

from alerts.instances import silence_seconds
from alerts.registry import all_groups
from alerts.rule import Alert
from slo.burn import seconds_to_cross
from slo.names import alerts, labels
from slo.objectives import Slo
from slo.spec import Spec

_DOWN = (alerts.ENGINE_DOWN, alerts.SERVICE_DOWN)
_STATES_PROBED = (*_DOWN, alerts.ENGINE_ASLEEP, alerts.ENGINE_METRICS_MISSING)


def delivery_seconds(spec: Spec, severity: str) -> int:
    """Return the most that grouping adds: a new group waits group_wait, a known one its interval.

    A page of a kind that does not fire yet for its service and model is always a new group.
    """
    intervals = spec.intervals
    if severity == "page":
        return intervals.page_group_wait_seconds
    return max(intervals.group_wait_seconds, group_interval_seconds(spec, severity))


def group_interval_seconds(spec: Spec, severity: str) -> int:
    """Return how long a group that was notified waits before it is notified of a change."""
    intervals = spec.intervals
    return intervals.page_group_interval_seconds if severity == "page" else intervals.group_interval_seconds


def detect_seconds(
    spec: Spec, alert: Alert, error_ratio: float = 1.0, *, refused: bool = False
) -> float | None:
    """Return the most seconds from a constant fault to a true condition, without evaluation and `for`.

    *error_ratio* is the share of bad events from the fault on, on a clean full history; *refused*: an engine that
    is down refuses its probes, which is seen sooner than one that is silent. None where no fault of that size
    fires the alert, or where its time depends on more than one number.
    """
    intervals, states = spec.intervals, spec.states
    one_scrape = float(intervals.scrape_seconds)
    if alert.name in _DOWN and not refused:
        return one_scrape + silence_seconds(spec)
    if alert.name in _STATES_PROBED:
        return one_scrape + intervals.scrape_timeout_seconds
    if alert.name == alerts.ENGINE_HUNG:
        # The last step before the fault may be read a scrape later, and stays in the window to its end.
        return one_scrape + states.hung.window
    if alert.name == alerts.CANARY_FAILING:
        return (
            max(spec.canary.failing_after, spec.canary.interval_seconds + spec.canary.timeout_seconds)
            + one_scrape
        )
    if alert.name == alerts.REQUESTS_FAILING:
        return one_scrape + states.failing.window * states.failing.min_error_ratio / error_ratio
    if alert.name in (alerts.EXPORTER_DOWN, alerts.ALERTMANAGER_DOWN):
        return one_scrape + intervals.scrape_timeout_seconds
    if slo := _slo(spec, alert):
        return _burn_seconds(spec, alert, slo, error_ratio)
    return None


def theory(spec: Spec, alert: Alert, error_ratio: float = 1.0, *, refused: bool = False) -> float | None:
    """Return the most seconds from fault to delivered notification, or None where theory gives no bound.

    Detection, one evaluation, `for` (rounded up to whole evaluations), grouping.
    """
    detected = detect_seconds(spec, alert, error_ratio, refused=refused)
    if detected is None:
        return None
    every = next(group.interval_seconds for group in all_groups(spec) if alert in group.rules)
    held = -(-alert.for_seconds // every) * every
    return detected + every + held + delivery_seconds(spec, alert.severity)


def _slo(spec: Spec, alert: Alert) -> Slo | None:
    if labels.SLOTH_SEVERITY not in alert.labels:
        return None
    service = spec.service(alert.labels[labels.SERVICE])
    return next(s for s in service.slos if s.id == alert.labels[labels.SLOTH_SLO])


def _burn_seconds(spec: Spec, alert: Alert, slo: Slo, error_ratio: float) -> float | None:
    """The quickest of the severity's pairs; the base window smears the beginning by its length."""
    budget, intervals = spec.budget, spec.intervals
    pairs = [w for w in budget.windows if w.severity == alert.severity]
    quickest = min((w.long for w in budget.windows if w.severity == "page"), default=0)
    times = [
        crossed + (0 if w.long == quickest else intervals.resample_seconds)
        for w in pairs
        if (crossed := seconds_to_cross(w, budget.period_days, slo.objective, error_ratio)) is not None
    ]
    return min(times) + intervals.scrape_seconds + intervals.base_window_seconds if times else None
