"""A row, one of its alerts, and how long the live series were healthy -> the most seconds that theory allows.

Detection (burn × budget ÷ error ratio × window, or what the alert's own condition needs), one scrape,
one evaluation, `for`, grouping. `alerts.theory` gives the bound for a total fault on a full history;
here histories may be quieter than the present, or partly spent, and signals are bounded too, and in `node_theory` what GPUs,
hosts and recorded pages bring, in `rag_theory` what RAG services and collectors do, in `drift_theory` what embeddings do.
"""

from collections.abc import Callable
from dataclasses import replace

from alerts.drift import drift_groups
from alerts.node import node_groups
from alerts.rag import rag_groups
from alerts.registry import service_groups, stack_groups
from alerts.rule import Alert, Group
from alerts.scope import Scope
from alerts.signals import SIGNALS
from alerts.theory import delivery_seconds, detect_seconds, group_interval_seconds
from alerts.windows import period_seconds, quick_lengths, step_seconds
from inferwatch.scenarios.drift_theory import DRIFT_BOUNDS
from inferwatch.scenarios.node_theory import BOUNDS, NoTheory
from inferwatch.scenarios.rag_theory import RAG_BOUNDS
from inferwatch.scenarios.row import Expected, Row
from slo.burn import error_ratio_threshold
from slo.names import alerts, labels
from slo.objectives import Slo
from slo.spec import Spec

DISCOVERY_SECONDS = 10.0
"""Prometheus reads a file_sd file again at once or after 5 s, and passes changes on every 5 s."""
RESEND_SECONDS = 60.0
"""Prometheus tells Alertmanager again of an alert that fires, so often (its own default)."""
RESENDS_TO_LIVE = 4
"""An alert that Prometheus does not repeat for so many resends has ended (its own rule)."""
GOSSIP_SECONDS = 30.0
"""Within which Alertmanagers notice a dead peer (memberlist's probes and suspicion)."""


def crossing_seconds(
    threshold: float, window: float, level: float, rate: float, past: tuple[float, float], lead: float
) -> float:
    """
    Return seconds until bad over total in the window crosses *threshold*, the fault being constant.

    *rate*: events per second now, of which *level* are bad; *past*: rate and bad share of the history,
    which is followed by *lead* healthy seconds at the present rate. Raises NoTheory when it never crosses.
    """
    old_rate, old_bad = past
    gained = level * rate - threshold * rate - (old_bad - threshold) * old_rate
    missing = (threshold - old_bad) * old_rate * (window - lead) + threshold * rate * lead
    if gained <= 0 or missing / gained > window:
        raise NoTheory(f"{level:g} bad of {rate:g} events/s never cross {threshold:g}")
    return max(0.0, missing / gained)


class Theory:
    """Bounds for the rows of one stage."""

    def __init__(self, spec: Spec, delivered_later_seconds: float = 0.0) -> None:
        self._spec = spec
        self._later = delivered_later_seconds

    def seconds(self, row: Row, expected: Expected, lead: float) -> float:
        """
        Return the most seconds from fault to delivered notification.

        *lead*: for how long the live series were healthy before the fault. Raises NoTheory.
        """
        if expected.alert == alerts.WATCHDOG:
            return self._watchdog(expected) + self._later
        alert, every = self._rule(row, expected)
        held = -(-alert.for_seconds // every) * every
        grouped = delivery_seconds(self._spec, alert.severity)
        if expected.joins:
            grouped = max(grouped, group_interval_seconds(self._spec, alert.severity))
        if expected.afterwards:
            # It fires already, and is sent again at an evaluation.
            return RESEND_SECONDS + every + grouped + self._later
        wait = every + held + grouped + self._later + self._mapped(row, expected)
        if expected.seen_as is not None:
            alert, _ = self._rule(row, replace(expected, alert=expected.seen_as))
        return self._detected(row, expected, alert, lead) + wait

    def _mapped(self, row: Row, expected: Expected) -> float:
        """
        Without our exporter records are evaluated first, and nothing says why an engine does not answer.

        So it is down once failed scrapes fill the base window, as it is with timeouts.
        """
        intervals = self._spec.intervals
        if not row.direct:
            return 0.0
        down = expected.alert in (alerts.ENGINE_DOWN, alerts.SERVICE_DOWN)
        return float(intervals.evaluation_seconds + (intervals.base_window_seconds if down else 0))

    def _rule(self, row: Row, expected: Expected) -> tuple[Alert, int]:
        for group in self._groups(row):
            for rule in group.rules:
                if isinstance(rule, Alert) and rule.name == expected.alert and _fits(rule, expected):
                    return rule, group.interval_seconds
        raise NoTheory(f"no rule {expected.alert} {dict(expected.labels)} in the stage of {row.name}")

    def _groups(self, row: Row) -> tuple[Group, ...]:
        own: tuple[Group, ...] = ()
        if row.stage in ("fleet", "drift") or (row.stage == "nodes" and row.engines):
            scope = Scope(self._spec, self._spec.service(row.name))
            own = (*service_groups(scope), *drift_groups(scope))
        return (*own, *stack_groups(self._spec), *node_groups(self._spec), *rag_groups(self._spec))

    def _detected(self, row: Row, expected: Expected, alert: Alert, lead: float) -> float:
        if labels.SLOTH_SEVERITY in alert.labels:
            return self._burn(row, expected, alert, lead)
        if alert.name == alerts.ERROR_BUDGET_LOW:
            return self._budget(row, expected, lead)
        if rule := next((one for one in SIGNALS if one.alert == alert.name), None):
            return self._signal(rule.signal_id, expected)
        if counted := _BY_NAME.get(alert.name):
            return counted(self._spec)
        if bound := (BOUNDS | RAG_BOUNDS).get(alert.name):
            return bound(self._spec, row, expected)
        if sent := DRIFT_BOUNDS.get(alert.name):
            return sent(self._spec, row, expected, lead)
        known = detect_seconds(self._spec, alert, expected.level, refused=expected.refused)
        if known is None:
            raise NoTheory(f"{alert.name}: nothing says how soon it may come")
        return known

    def _burn(self, row: Row, expected: Expected, alert: Alert, lead: float) -> float:
        """The quickest of the severity's pairs, each when both of its windows have crossed."""
        scope = Scope(self._spec, self._spec.service(row.name))
        slo = next(s for s in scope.service.slos if s.id == alert.labels[labels.SLOTH_SLO])
        budget = self._spec.budget
        pairs = [window for window in budget.windows if window.severity == alert.severity]
        found = []
        for pair in pairs:
            limit = error_ratio_threshold(pair, budget.period_days, slo.objective)
            try:
                crossed = max(
                    self._crossed(row, expected, slo, limit, window, lead)
                    for window in (pair.long, pair.short)
                )
            except NoTheory:
                continue  # this pair cannot fire at that level; another one may
            found.append(crossed + self._resampled(scope, pair.long))
        if not found:
            raise NoTheory(f"{row.name}: {alert.name}: no pair of windows fires at {expected.level:g}")
        return min(found)

    def _budget(self, row: Row, expected: Expected, lead: float) -> float:
        budget = self._spec.budget
        scope = Scope(self._spec, self._spec.service(row.name))
        slo = next(s for s in scope.service.slos if s.id in row.history.bad_ratios)
        limit = (1 - budget.low_budget_ratio) * (1 - slo.objective)
        period = period_seconds(scope)
        return self._crossed(row, expected, slo, limit, period, lead) + self._resampled(scope, period)

    def _crossed(
        self, row: Row, expected: Expected, slo: Slo, limit: float, window: float, lead: float
    ) -> float:
        rate = row.live_rate if expected.events_per_second is None else expected.events_per_second
        past = (row.past_rate, row.history.bad_ratios.get(slo.id, 0.0))
        if row.history.days is not None:
            window = min(window, row.history.days * 86_400)
        return crossing_seconds(limit, window, expected.level, rate, past, min(lead, window))

    def _resampled(self, scope: Scope, length: int) -> float:
        """The base window smears a beginning by its length; coarser records wait for their step."""
        intervals = self._spec.intervals
        step = 0 if length in quick_lengths(scope) else step_seconds(scope, length)
        return float(intervals.scrape_seconds + intervals.base_window_seconds + step)

    def _signal(self, signal_id: str, expected: Expected) -> float:
        """A mean crosses when enough of its window is the new level, a median when half of it is."""
        signal = self._spec.signal(signal_id)
        share = 0.5
        if signal.statistic == "mean":
            share = (signal.threshold - expected.healthy) / (expected.level - expected.healthy)
        if not 0 <= share <= 1:
            raise NoTheory(f"{signal_id}: {expected.level:g} is on the good side of {signal.threshold:g}")
        return share * signal.window + self._spec.intervals.scrape_seconds

    def _watchdog(self, expected: Expected) -> float:
        repeat = self._spec.intervals.watchdog_repeat_seconds
        return (
            repeat + RESEND_SECONDS
            if expected.status == "firing"
            else RESENDS_TO_LIVE * RESEND_SECONDS + repeat
        )


def _fits(rule: Alert, expected: Expected) -> bool:
    """A rule's own labels must not contradict what is expected; labels of the series are not known here."""
    return all(rule.labels.get(name, value) == value for name, value in expected.labels.items())


def _removed(spec: Spec) -> float:
    """Left service discovery; its series end two scrapes later."""
    return DISCOVERY_SECONDS + 3 * spec.intervals.scrape_seconds


def _counted(spec: Spec) -> float:
    """A counter of Prometheus itself rises between two scrapes of it, once what it counts was tried."""
    return 2.0 * spec.intervals.evaluation_seconds + 2.0 * spec.intervals.scrape_seconds


def _refused(spec: Spec) -> float:
    """A gauge that says so at the next scrape."""
    return float(spec.intervals.scrape_seconds)


def _resets(spec: Spec) -> float:
    """Two processes in turn: a counter falls at every second scrape."""
    return 2.0 * spec.trust.resets.at_least * spec.intervals.scrape_seconds


def _probes(spec: Spec) -> float:
    """The share of failed probes that is too much fills its part of the window."""
    scrapes = spec.trust.scrapes
    return (1 - scrapes.min_success_ratio) * scrapes.window + spec.intervals.scrape_seconds


def _throughput(spec: Spec) -> float:
    """Requests wait for half of the window."""
    return spec.services[0].throughput_floor.window / 2 + spec.intervals.scrape_seconds


def _not_notified(spec: Spec) -> float:
    """A notification is due, and is tried until its interval is over before it counts as failed."""
    return 2.0 * spec.intervals.watchdog_repeat_seconds + 2.0 * spec.intervals.scrape_seconds


def _peers(spec: Spec) -> float:
    return GOSSIP_SECONDS + spec.intervals.scrape_seconds


_BY_NAME: dict[str, Callable[[Spec], float]] = {
    alerts.TARGET_VANISHED: _removed,
    alerts.SERVICE_VANISHED: _removed,
    alerts.COUNTER_INCONSISTENT: _resets,
    alerts.PROBES_FAILING: _probes,
    alerts.SCRAPES_FAILING: _probes,
    alerts.THROUGHPUT_LOW: _throughput,
    alerts.RULE_EVALUATION_FAILING: _counted,
    alerts.INGESTION_FAILING: _counted,
    alerts.PROMETHEUS_CONFIG_FAILED: _refused,
    alerts.ALERTMANAGER_CONFIG_FAILED: _refused,
    alerts.NODE_AGENT_DOWN: _refused,
    alerts.ALERTMANAGER_CLUSTER_DEGRADED: _peers,
    alerts.NOTIFICATIONS_FAILING: _not_notified,
}
