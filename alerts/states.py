"""States of engines that are wrong at once, whatever the budget says -> alerts."""

from alerts.instances import UNREADABLE_REASONS
from alerts.promql import promql, window
from alerts.rule import Alert, Record
from alerts.scope import Scope
from alerts.texts import PROBE_REASON, WHO, links, percent, span
from slo.names import alerts, canary, engine, labels, records

UP_JOBS = f'job=~"{labels.JOB_ENGINE}|{labels.JOB_DIRECT}"'


def state_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the alerts on states; evaluated with the base records."""
    return (
        _engine_down(scope),
        _service_down(scope),
        _hung(scope),
        _asleep(scope),
        _metrics_missing(scope),
        _canary(scope),
        _failing(scope),
    )


def _engine_down(scope: Scope) -> Alert:
    return Alert(
        alerts.ENGINE_DOWN,
        f"{scope.recorded(records.INSTANCE_DOWN)} == 1",
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} is down{PROBE_REASON}",
        "The engine does not answer its probes. Requests routed to it fail; promised is that it answers "
        f"every probe ({span(scope.spec.intervals.scrape_seconds)} apart).",
        for_seconds=scope.spec.states.down.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_DOWN, "engine"),
    )


def _service_down(scope: Scope) -> Alert:
    return Alert(
        alerts.SERVICE_DOWN,
        f"{scope.recorded(records.UNSERVED)} == 1",
        "page",
        f"{WHO}: nothing serves the model",
        "Every engine of the model is down or hangs, so that every request fails. Until one serves again the "
        "error budget is charged at the request rate of the last hour.",
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
        f"Requests run or wait and the engine made no step for {span(hung.window)}, while its HTTP server "
        "still answers. Those requests will not finish; promised is a step whenever there is work.",
        for_seconds=hung.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_HUNG, "engine"),
    )


def _asleep(scope: Scope) -> Alert:
    asleep = scope.spec.states.asleep
    return Alert(
        alerts.ENGINE_ASLEEP,
        f"max by (instance, model) ({scope.raw(engine.ENGINE_SLEEPING)}) == 1",
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} is asleep",
        f"The engine was put into sleep mode over {span(asleep.for_)} ago and serves nothing, although its "
        "health check answers 200. Promised is that an engine in service discovery serves.",
        for_seconds=asleep.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_ASLEEP, "engine"),
    )


def _metrics_missing(scope: Scope) -> Alert:
    known = scope.recorded(records.INSTANCE_MODEL)
    reasons = "|".join(UNREADABLE_REASONS)
    unreadable = scope.raw(engine.PROBE_FAILURE, f'reason=~"{reasons}"')
    missing = scope.spec.states.no_engine_metrics
    return Alert(
        alerts.ENGINE_METRICS_MISSING,
        f"{known} * on (instance) group_left () max by (instance) ({unreadable}) == 1",
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} answers without usable metrics{PROBE_REASON}",
        f"For over {span(missing.for_)} the engine has answered, but nothing of it could be read. Whether the "
        "promises are kept there is unknown: no other alert sees this engine.",
        for_seconds=missing.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.ENGINE_METRICS_MISSING, "engine"),
    )


def _canary(scope: Scope) -> Alert:
    """Before the first success the failures so far stand for the time, a lower bound."""
    spec = scope.spec.canary
    known, last = scope.recorded(records.INSTANCE_MODEL), scope.raw(canary.LAST_SUCCESS)
    failures = scope.raw(canary.REQUESTS, 'result!="ok"')
    failed = f"sum by (instance) ({failures})"
    expr = promql(f"""
        {known} * on (instance) group_left () (
          (time() - max by (instance) ({last}) or on (instance) {failed} * {spec.interval_seconds:g})
          and on (instance) (max by (instance) ({scope.raw(canary.SUCCESS)}) == 0)
        ) > {spec.failing_after}
    """)
    return Alert(
        alerts.CANARY_FAILING,
        expr,
        "page",
        f"{WHO}: engine {{{{ $labels.instance }}}} does not answer a one-token request",
        "The last canary request that succeeded was {{ $value | humanizeDuration }} ago; promised is one at "
        f"least every {span(spec.failing_after)}. Users' requests most likely fail too.",
        labels=scope.labels,
        links=links(scope.spec, alerts.CANARY_FAILING, "engine"),
    )


def failing_span_seconds(scope: Scope) -> int:
    """Return how long records are summed so that, with the base window, they cover states.failing.window."""
    return max(scope.spec.intervals.evaluation_seconds, scope.spec.states.failing.window - scope.base_seconds)


def _failing(scope: Scope) -> Alert:
    failing = scope.spec.states.failing
    over = window(failing_span_seconds(scope))
    failures, requests = scope.recorded(records.FAILURES), scope.recorded(records.REQUESTS)
    expr = promql(f"""
        sum_over_time({failures}{over}) / (sum_over_time({requests}{over}) > 0) >= {failing.min_error_ratio:g}
        and avg_over_time({failures}{over}) * {failing.window} >= {failing.min_bad_events:g}
    """)
    return Alert(
        alerts.REQUESTS_FAILING,
        expr,
        "page",
        f"{WHO}: {{{{ $value | humanizePercentage }}}} of requests fail",
        f"So many of the requests of the last {span(failing.window)} failed on the server's side; a page starts "
        f"at {percent(failing.min_error_ratio)} and {failing.min_bad_events:g} failures.",
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
    seen = f"last_over_time({scope.recorded(records.TARGET_SEEN)}{window(vanished.lookback)})"
    present = f"on (instance) {scope.raw('up', UP_JOBS)}"
    return (
        Alert(
            alerts.TARGET_VANISHED,
            f"time() - ({seen} unless {present})",
            "ticket",
            f"{WHO}: engine {{{{ $labels.instance }}}} is gone from service discovery",
            "It was last seen {{ $value | humanizeDuration }} ago and nothing watches it now. Fine after a "
            f"planned scale-down; the alert ends by itself {span(vanished.lookback)} after the target left.",
            for_seconds=vanished.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.TARGET_VANISHED, "engine"),
        ),
        Alert(
            alerts.SERVICE_VANISHED,
            f"count by (model) ({seen}) unless on (model) count by (model) ({seen} and {present})",
            "page",
            f"{WHO}: no engine is left in service discovery",
            "All {{ $value }} engines of the last "
            f"{span(vanished.lookback)} are gone from service discovery. Nobody watches the model, and most "
            "likely nothing serves it.",
            for_seconds=vanished.for_,
            labels=scope.labels,
            links=links(scope.spec, alerts.SERVICE_VANISHED, "slo"),
        ),
    )
