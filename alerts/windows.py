"""Event rates -> error ratios over every window, burn rates and what is left of the budget.

A ratio is bad over total, both summed over the window, never a mean of ratios. The quickest page
windows are summed from every evaluation, longer ones from a resample by the minute, the whole period
from one of five minutes, so that it stays cheap. None mixes steps within one series.
"""

from alerts.events import slo_labels, slo_matcher
from alerts.promql import window
from alerts.rule import Record
from alerts.scope import Scope
from slo.burn import window_lengths
from slo.duration import format_seconds
from slo.names import labels, records
from slo.objectives import BurnWindow, Slo

DAY_SECONDS = 86_400


def quick_windows(scope: Scope) -> tuple[BurnWindow, ...]:
    """Return the page windows that are judged at every evaluation: the shortest long window of all."""
    pages = [w for w in scope.spec.budget.windows if w.severity == "page"]
    shortest = min((w.long for w in pages), default=0)
    return tuple(w for w in pages if w.long == shortest)


def quick_lengths(scope: Scope) -> list[int]:
    """Return the lengths in seconds that are summed from every evaluation."""
    return sorted({length for w in quick_windows(scope) for length in (w.long, w.short)})


def period_seconds(scope: Scope) -> int:
    """Return the length of the budget's period in seconds."""
    return scope.spec.budget.period_days * DAY_SECONDS


def step_seconds(scope: Scope, length: int) -> int:
    """Return the step of the records that a window of *length* is summed from, in seconds."""
    intervals = scope.spec.intervals
    if length in quick_lengths(scope):
        return intervals.evaluation_seconds
    return (
        intervals.period_resample_seconds if length == period_seconds(scope) else intervals.resample_seconds
    )


def events(scope: Scope, length: int) -> tuple[str, str]:
    """Return the names of the bad and total records that a window of *length* is summed from."""
    if length in quick_lengths(scope):
        return records.BAD_EVENTS, records.TOTAL_EVENTS
    if length == period_seconds(scope):
        return records.BAD_EVENTS_PERIOD, records.TOTAL_EVENTS_PERIOD
    return records.BAD_EVENTS_MINUTE, records.TOTAL_EVENTS_MINUTE


def _ratio(scope: Scope, length: int, slo: Slo | None = None) -> Record:
    """Of one SLO, or of all in one rule."""
    of = () if slo is None else (slo_matcher(scope, slo),)
    names = scope.labels if slo is None else slo_labels(scope, slo)
    bad, total = (scope.recorded(one, *of) for one in events(scope, length))
    span = window(length)
    expr = f"clamp_max(clamp_min(sum_over_time({bad}{span}), 0)\n/ (sum_over_time({total}{span}) > 0), 1)"
    name = format_seconds(length)
    return Record(records.error_ratio(name), expr, names | {labels.SLOTH_WINDOW: name})


def quick_records(scope: Scope, slo: Slo) -> tuple[Record, ...]:
    """Return the ratios of an SLO's quickest page windows and its current burn rate, for every evaluation."""
    lengths = quick_lengths(scope)
    burn = _burn(scope, lengths[0], slo_matcher(scope, slo))
    return (
        *(_ratio(scope, length, slo) for length in lengths),
        Record(records.CURRENT_BURN_RATE, burn, slo_labels(scope, slo)),
    )


def _burn(scope: Scope, length: int, *of: str) -> str:
    ratio = scope.recorded(records.error_ratio(format_seconds(length)), *of)
    budget = scope.recorded(records.ERROR_BUDGET)
    return f"max without (sloth_window) ({ratio}) / on (sloth_id) group_left () {budget}"


def _resample(scope: Scope, record: str, source: str, step: int) -> Record:
    return Record(record, f"avg_over_time({scope.recorded(source)}{window(step)})", scope.labels)


def resampled_records(scope: Scope) -> tuple[Record, ...]:
    """Return the resample by the minute and the ratios of the longer burn windows."""
    step = scope.spec.intervals.resample_seconds
    known = (*quick_lengths(scope), period_seconds(scope))
    longer = [n for n in window_lengths(scope.spec.budget) if n not in known]
    return (
        _resample(scope, records.BAD_EVENTS_MINUTE, records.BAD_EVENTS, step),
        _resample(scope, records.TOTAL_EVENTS_MINUTE, records.TOTAL_EVENTS, step),
        *(_ratio(scope, length) for length in longer),
    )


def period_events(scope: Scope) -> tuple[Record, ...]:
    """Return the coarse resample that the whole period is summed from."""
    step = scope.spec.intervals.period_resample_seconds
    return (
        _resample(scope, records.BAD_EVENTS_PERIOD, records.BAD_EVENTS, step),
        _resample(scope, records.TOTAL_EVENTS_PERIOD, records.TOTAL_EVENTS, step),
    )


def period_records(scope: Scope) -> tuple[Record, ...]:
    """Return the period's error ratio and burn rate, and the budget left."""
    period = period_seconds(scope)
    return (
        _ratio(scope, period),
        Record(records.PERIOD_BURN_RATE, _burn(scope, period), scope.labels),
        Record(records.BUDGET_REMAINING, f"1 - {scope.recorded(records.PERIOD_BURN_RATE)}", scope.labels),
    )


def promise_records(scope: Scope) -> tuple[Record, ...]:
    """Return what is promised as series: objective, budget, period, info."""
    rules: list[Record] = []
    for slo in scope.service.slos:
        names = slo_labels(scope, slo)
        rules += [
            Record(records.OBJECTIVE, f"vector({slo.objective:g})", names),
            Record(records.ERROR_BUDGET, f"vector({1 - slo.objective:.10g})", names),
            Record(records.PERIOD_DAYS, f"vector({scope.spec.budget.period_days})", names),
            Record(
                records.SLO_INFO,
                "vector(1)",
                names
                | {
                    "sloth_mode": "inferwatch",
                    "sloth_spec": "slo.yaml",
                    "sloth_objective": f"{slo.objective * 100:.10g}",
                },
            ),
        ]
    return tuple(rules)
