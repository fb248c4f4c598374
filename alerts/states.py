"""States of engines that are wrong at once, whatever the budget says -> alerts."""

import math

from alerts.burn_alerts import promise
from alerts.instances import MET, NEW, UNREADABLE_REASONS, UP_JOBS, silence_seconds
from alerts.promql import promql, window
from alerts.rule import Alert, Record
from alerts.scope import Scope
from alerts.texts import PROBE_REASON, WHO, links, looked_up, percent, span
from slo.duration import format_seconds
from slo.names import alerts, canary, engine, labels, records
from slo.spec import Spec


def state_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the alerts on states; evaluated after the records of instances."""
    return (
        _engine_down(scope),
        _service_down(scope),
        _hung(scope),
        _asleep(scope),
        _metrics_missing(scope),
    )


def failing_records(scope: Scope) -> tuple[Record, ...]:
    """Return the share of requests that fail now; after the request records."""
    return (Record(records.FAILING, _failing_ratio(scope), scope.labels),)


def failing_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the alerts on requests that fail, the canary's and users'."""
    return (_canary(scope), _failing(scope))


def promised_answers(scope: Scope) -> str:
    """What is promised of answers; where slo.yaml promises no availability, that one engine serves."""
    answered = [promise(slo) for slo in scope.service.slos if slo.kind == "availability"]
    return answered[0] if answered else "at least 1 engine that serves"


def _engine_down(scope: Scope) -> Alert:
    """What never answered may be loading its model: that is no page yet."""
    down, new = scope.recorded(records.INSTANCE_DOWN, MET), scope.recorded(records.INSTANCE_DOWN, NEW)
    loading = scope.spec.states.starting.for_
    expr = promql(f"""
        {down} == 1
        or ({new} == 1 and min_over_time({new}{window(loading)}) == 1 and {new} offset {format_seconds(loading)})
    """)
    return Alert(
        alerts.ENGINE_DOWN,
        expr,
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} is down{PROBE_REASON}",
        f"Now: no usable answer to any probe for over {span(scope.spec.states.down.for_)}. Promised: one to each, "
        f"every {span(scope.spec.intervals.scrape_seconds)}. Requests routed to it fail.",
        for_seconds=scope.spec.states.down.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_DOWN, "engine"),
    )


def _service_down(scope: Scope) -> Alert:
    engines = looked_up(
        f"count({records.INSTANCE_DOWN}{{service=%q,model=%q}})", labels.SERVICE, labels.MODEL
    )
    return Alert(
        alerts.SERVICE_DOWN,
        f"{scope.recorded(records.UNSERVED)} == 1",
        "page",
        f"{WHO}: nothing serves the model",
        f"Now: 0 of {engines} engines serve, for over {span(scope.spec.states.down.for_)}; each is down or hangs. "
        f"Promised: {promised_answers(scope)}. Every request fails, and until one engine serves again the error budget "
        "is charged at the request rate of the last hour.",
        for_seconds=scope.spec.states.down.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.SERVICE_DOWN, "slo"),
    )


def _hung(scope: Scope) -> Alert:
    hung = scope.spec.states.hung
    return Alert(
        alerts.ENGINE_HUNG,
        f"{scope.recorded(records.INSTANCE_STUCK_REQUESTS)} > 0",
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} hangs; requests in it: {{{{ $value | humanize }}}}",
        f"Now: {{{{ $value | humanize }}}} requests run or wait, and no step was made in {span(hung.window)}, while the "
        f"HTTP server still answers. Promised: a step within {span(hung.window)} whenever there is work. Those requests "
        "will not finish.",
        for_seconds=hung.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_HUNG, "engine"),
    )


def _asleep(scope: Scope) -> Alert:
    asleep = scope.spec.states.asleep
    return Alert(
        alerts.ENGINE_ASLEEP,
        # A scrape of the exporter may be lost meanwhile.
        f"max by (instance, model) (last_over_time({scope.raw(engine.ENGINE_SLEEPING)}{scope.base})) == 1",
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} is asleep",
        f"Now: in sleep mode for over {span(asleep.for_)}; it serves nothing, although its health check answers 200. "
        f"Promised: an engine in service discovery serves, and sleeps for at most {span(asleep.for_)}.",
        for_seconds=asleep.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_ASLEEP, "engine"),
    )


def _metrics_missing(scope: Scope) -> Alert:
    reasons = f'reason=~"{"|".join(UNREADABLE_REASONS)}"'
    known, unreadable = (
        f"last_over_time({series}{scope.base})"
        for series in (scope.recorded(records.INSTANCE_MODEL), scope.raw(engine.PROBE_FAILURE, reasons))
    )
    missing = scope.spec.states.no_engine_metrics
    return Alert(
        alerts.ENGINE_METRICS_MISSING,
        f"{known} * on (instance) group_left () max by (instance) ({unreadable}) == 1",
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} answers without usable metrics{PROBE_REASON}",
        f"Now: 0 usable series for over {span(missing.for_)}, though it answers. Promised: metrics with every probe, one "
        f"every {span(scope.spec.intervals.scrape_seconds)}. Whether its promises are kept is unknown: no other alert "
        "sees this engine.",
        for_seconds=missing.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_METRICS_MISSING, "engine"),
    )


def _canary(scope: Scope) -> Alert:
    """Before the first success the failures so far stand for the time, a lower bound.

    An outage that another page told is not told again by a canary that has not asked since it ended.
    """
    spec = scope.spec.canary
    known, last = scope.recorded(records.INSTANCE_MODEL), scope.raw(canary.LAST_SUCCESS)
    failures = scope.raw(canary.REQUESTS, 'result!="ok"')
    failed = f"sum by (instance) ({failures})"
    lately = window(_asked_again_seconds(scope.spec))
    told = f'alertname="{alerts.ENGINE_DOWN}",alertstate="firing"'
    loading, down, stuck, failing = (
        f"max_over_time({series}{lately})"
        for series in (
            scope.recorded(records.INSTANCE_DOWN, NEW),
            scope.recorded("ALERTS", told),
            scope.recorded(records.INSTANCE_STUCK_REQUESTS),
            scope.recorded(records.FAILING),
        )
    )
    expr = promql(f"""
        {known} * on (instance) group_left () (
          (time() - max by (instance) ({last}) or on (instance) {failed} * {spec.interval_seconds:g})
          and on (instance) (max by (instance) ({scope.raw(canary.SUCCESS)}) == 0)
        ) > {spec.failing_after}
        unless on (instance) ({loading} == 1 or {down} == 1 or {stuck} > 0)
        unless on (model) {failing} >= {scope.spec.states.failing.min_error_ratio:g}
    """)
    return Alert(
        alerts.CANARY_FAILING,
        expr,
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} does not answer a one-token request",
        "Now: the last one that succeeded was {{ $value | humanizeDuration }} ago. Promised: one at least every "
        f"{span(spec.failing_after)}. Users' requests most likely fail too.",
        for_seconds=_told_by_others_seconds(scope.spec),
        labels=scope.labels,
        links=links(scope.spec, alerts.CANARY_FAILING, "engine"),
    )


def _asked_again_seconds(spec: Spec) -> int:
    """Return how long after an outage the canary's last word may still be of it: its back-off, a request, its scrape."""
    asked = max(spec.canary.interval_seconds, spec.canary.backoff_max_seconds) + spec.canary.timeout_seconds
    return math.ceil(asked) + spec.intervals.scrape_seconds + spec.intervals.evaluation_seconds


def _told_by_others_seconds(spec: Spec) -> int:
    """Return how much later than a failing canary a silent or hung engine may be known for what it is.

    The last success may be an interval older than the fault, and what is known of states is read in another group:
    an evaluation later.
    """
    known = max(spec.states.hung.window, silence_seconds(spec))
    known += spec.intervals.scrape_seconds + 2 * spec.intervals.evaluation_seconds
    return max(0, math.ceil(known + spec.canary.interval_seconds - spec.canary.failing_after))


def failing_span_seconds(scope: Scope) -> int:
    """Return how long records are summed so that, with the base window, they cover states.failing.window."""
    return max(scope.spec.intervals.evaluation_seconds, scope.spec.states.failing.window - scope.base_seconds)


def _failing_ratio(scope: Scope) -> str:
    failing = scope.spec.states.failing
    over = window(failing_span_seconds(scope))
    failures, requests = scope.recorded(records.FAILURES), scope.recorded(records.REQUESTS)
    return promql(f"""
        sum_over_time({failures}{over}) / (sum_over_time({requests}{over}) > 0)
        and avg_over_time({failures}{over}) * {failing.window} >= {failing.min_bad_events:g}
    """)


def _failing(scope: Scope) -> Alert:
    failing = scope.spec.states.failing
    return Alert(
        alerts.REQUESTS_FAILING,
        f"{scope.recorded(records.FAILING)} >= {failing.min_error_ratio:g}",
        "page",
        f"{WHO}: {{{{ $value | humanizePercentage }}}} of requests fail",
        f"Now: {{{{ $value | humanizePercentage }}}} of the requests of {span(failing.window)} failed on the server's side. "
        f"Promised: {promised_answers(scope)}; this pages from {percent(failing.min_error_ratio)} and "
        f"{failing.min_bad_events:g} failures on.",
        for_seconds=failing.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.REQUESTS_FAILING, "slo"),
    )


def target_records(scope: Scope) -> tuple[Record, ...]:
    """Return when each target was last in service discovery; for slow evaluation."""
    known = scope.recorded(records.INSTANCE_MODEL)
    seen = f"max by (instance) (timestamp({scope.raw('up', UP_JOBS)}))"
    return (Record(records.TARGET_SEEN, f"{known} * on (instance) group_left () {seen}", scope.labels),)


def target_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the alerts on targets that left service discovery.

    One of several that leaves is most often a scale-down: a ticket. The last one is a page.
    """
    vanished = scope.spec.states.vanished
    lookback = window(vanished.lookback)
    # Under the model that it served last: while it loaded, it had none.
    seen = f"topk by (instance) (1, last_over_time({scope.recorded(records.TARGET_SEEN)}{lookback}))"
    new, met = (
        f"last_over_time({scope.recorded(records.TARGET_SEEN, which)}{lookback})" for which in (NEW, MET)
    )
    present = f"on (instance) {scope.raw('up', UP_JOBS)}"
    return (
        Alert(
            alerts.TARGET_VANISHED,
            f"time() - ({seen} unless {present})",
            "ticket",
            f"{WHO}: engine {{{{ $labels.instance }}}} is gone from service discovery",
            "Now: last seen {{ $value | humanizeDuration }} ago, and nothing watches it. Wanted: listed again within "
            f"{span(vanished.for_)}, unless it was scaled down on purpose; the alert ends by itself "
            f"{span(vanished.lookback)} after the target left.",
            for_seconds=vanished.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.TARGET_VANISHED, "engine"),
        ),
        Alert(
            alerts.SERVICE_VANISHED,
            f"count by (model) ({seen}) unless on (model) count by (model) ({seen} and {present})\n"
            f"unless on (model) ({new} and on () {met})",
            "page",
            f"{WHO}: no engine is left in service discovery",
            f"Now: 0 of the {{{{ $value }}}} engines of the last {span(vanished.lookback)} are listed, for over "
            f"{span(vanished.for_)}. Promised: {promised_answers(scope)}. Nobody watches the model, and most likely "
            "nothing serves it.",
            for_seconds=vanished.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.SERVICE_VANISHED, "slo"),
        ),
    )
