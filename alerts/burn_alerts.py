"""Error-budget windows of slo.yaml -> one alert per SLO and severity, a quick pair or a slow pair.

A pair is judged only where its long window holds enough history and saw enough bad events: a fresh
install does not storm, and one failure among three requests does not page.
"""

from alerts.events import slo_labels, slo_matcher
from alerts.promql import promql, window
from alerts.rule import Alert, Severity
from alerts.scope import Scope
from alerts.texts import WHO, links, percent, span
from alerts.windows import events, period_seconds, step_seconds
from slo.burn import error_ratio_threshold, reachable
from slo.duration import format_seconds
from slo.names import alerts, labels, records
from slo.objectives import BurnWindow, Slo

_NAMES = {
    ("availability", "page"): alerts.AVAILABILITY_BURN_FAST,
    ("availability", "ticket"): alerts.AVAILABILITY_BURN_SLOW,
    ("latency", "page"): alerts.LATENCY_BURN_FAST,
    ("latency", "ticket"): alerts.LATENCY_BURN_SLOW,
}


def pairs(scope: Scope, slo: Slo, severity: str) -> tuple[BurnWindow, ...]:
    """Return the windows of a severity that total failure could fire for this objective."""
    budget = scope.spec.budget
    return tuple(
        w
        for w in budget.windows
        if w.severity == severity and reachable(w, budget.period_days, slo.objective)
    )


def unreachable(scope: Scope) -> list[str]:
    """Return a line for each pair that no error ratio can fire, and that has no rule therefore."""
    budget = scope.spec.budget
    return [
        f"{scope.service.id}: {slo.id}: the {format_seconds(w.long)}/{format_seconds(w.short)} {w.severity} "
        f"would need {percent(error_ratio_threshold(w, budget.period_days, slo.objective))} of bad events"
        for slo in scope.service.slos
        for w in budget.windows
        if not reachable(w, budget.period_days, slo.objective)
    ]


def burn_alerts(scope: Scope, slo: Slo, severity: str) -> tuple[Alert, ...]:
    """Return an SLO's burn-rate alert of one severity; none where no failure could fire it."""
    return (_burn(scope, slo, severity),) if pairs(scope, slo, severity) else ()


def enough(scope: Scope, slo: Slo, length: int) -> str:
    """Return the guard of a window: enough history and enough bad events."""
    bad, total = events(scope, length)
    step, budget = step_seconds(scope, length), scope.spec.budget
    one, over = slo_matcher(scope, slo), window(length)
    fewest = budget.min_history_ratio * length / step
    return promql(f"""
        and count_over_time({scope.recorded(total, one)}{over}) >= {fewest:g}
        and sum_over_time({scope.recorded(bad, one)}{over}) * {step} >= {budget.min_bad_events:g}
    """)


def _burn(scope: Scope, slo: Slo, severity: str) -> Alert:
    name = _NAMES[slo.kind, severity]
    judged = pairs(scope, slo, severity)
    return Alert(
        name,
        "\nor\n".join(_pair(scope, slo, w) for w in judged),
        _severity(scope, slo, severity),
        f"{WHO}: {slo.id} burns its error budget {'fast' if severity == 'page' else 'steadily'}: "
        "{{ $value | humanizePercentage }} " + _bad(slo),
        f"Now: {{{{ $value | humanizePercentage }}}} of events are bad, over the long window that fired. Promised: "
        f"at most {percent(1 - slo.objective)} over {scope.spec.budget.period_days} days ({promise(slo)}). "
        f"{_limits(scope, slo, judged)}",
        labels=slo_labels(scope, slo) | {labels.SLOTH_SEVERITY: severity},
        links=links(scope.spec, name, "slo"),
    )


def _severity(scope: Scope, slo: Slo, severity: str) -> Severity:
    """A latency promise that nobody accepted yet is judged and shown, and notifies nobody."""
    if scope.service.observe and slo.kind == "latency":
        return "none"
    return "page" if severity == "page" else "ticket"


def _bad(slo: Slo) -> str:
    if slo.kind == "availability":
        return "of requests fail"
    return f"over {slo.threshold_seconds:g} s"


def promise(slo: Slo) -> str:
    """Return what an SLO promises, as people say it."""
    if slo.kind == "availability":
        return f"{percent(slo.objective)} of requests answered without a server-side failure"
    return f"{percent(slo.objective)} within {slo.threshold_seconds:g} s"


def _limits(scope: Scope, slo: Slo, judged: tuple[BurnWindow, ...]) -> str:
    period = scope.spec.budget.period_days
    parts = [
        f"{percent(error_ratio_threshold(w, period, slo.objective))} over {span(w.long)} and {span(w.short)}"
        for w in judged
    ]
    return f"Fires over {' or '.join(parts)}."


def _pair(scope: Scope, slo: Slo, pair: BurnWindow) -> str:
    limit = f"{error_ratio_threshold(pair, scope.spec.budget.period_days, slo.objective):.10g}"
    one = slo_matcher(scope, slo)
    ratios = [
        f"max without (sloth_window) ({scope.recorded(records.error_ratio(format_seconds(n)), one)}) > {limit}"
        for n in (pair.long, pair.short)
    ]
    return "(\n" + "\nand ".join(ratios) + "\n" + enough(scope, slo, pair.long) + "\n)"


def budget_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the alert on budgets that are nearly spent, one an SLO."""
    return tuple(_budget_low(scope, slo) for slo in scope.service.slos)


def _budget_low(scope: Scope, slo: Slo) -> Alert:
    budget = scope.spec.budget
    remaining = scope.recorded(records.BUDGET_REMAINING, slo_matcher(scope, slo))
    guard = enough(scope, slo, period_seconds(scope))
    return Alert(
        alerts.ERROR_BUDGET_LOW,
        f"{remaining} < {budget.low_budget_ratio:g}\n{guard}",
        _severity(scope, slo, "ticket"),
        f"{WHO}: {slo.id} has {{{{ $value | humanizePercentage }}}} of its error budget left",
        f"Now: {{{{ $value | humanizePercentage }}}} of the {budget.period_days} days' budget is left. Promised: at most "
        f"{percent(1 - slo.objective)} of events bad ({promise(slo)}); below 0 % that is broken. Wanted: at least "
        f"{percent(budget.low_budget_ratio)} left. Hold back risky changes.",
        labels=slo_labels(scope, slo),
        links=links(scope.spec, alerts.ERROR_BUDGET_LOW, "slo"),
    )
