"""Numbers that cannot be trusted -> records and warnings: unknown is never taken for healthy."""

from alerts.events import inference_handlers
from alerts.promql import promql, window
from alerts.quantiles import uncommon_bounds
from alerts.rule import Alert, Record
from alerts.scope import Scope
from alerts.texts import WHO, links, percent, span
from slo.names import alerts, engine, records


def doubt_records(scope: Scope) -> tuple[Record, ...]:
    """Return the instances whose counters fall too often; their rates are used nowhere."""
    resets = scope.spec.trust.resets
    over = window(resets.window)
    read = (
        scope.raw(engine.GENERATION_TOKENS_TOTAL),
        scope.raw(engine.REQUESTS_TOTAL),
        scope.raw(engine.HTTP_REQUESTS_TOTAL, inference_handlers(scope)),
    )
    counters = " or ".join(f"resets({one}{over})" for one in read)
    known = scope.recorded(records.INSTANCE_MODEL)
    expr = f"{known} * on (instance) group_left () (max by (instance) ({counters}) >= {resets.at_least})"
    return (Record(records.INSTANCE_INCONSISTENT, expr, scope.labels),)


def doubt_alerts(scope: Scope) -> tuple[Alert, ...]:
    """Return the warnings about doubtful numbers; for slow evaluation."""
    return (_inconsistent(scope), _mixed(scope), _off_scale(scope), _probes(scope))


def _inconsistent(scope: Scope) -> Alert:
    resets = scope.spec.trust.resets
    return Alert(
        alerts.COUNTER_INCONSISTENT,
        f"{scope.recorded(records.INSTANCE_INCONSISTENT)} > 0",
        "warning",
        f"{WHO}: counters of {{{{ $labels.instance }}}} fall again and again",
        f"Now: a counter fell {{{{ $value }}}} times in {span(resets.window)}. Wanted: at most {resets.at_least - 1} "
        "times, which are taken for restarts. Several processes answer in turn, or the engine restarts in a loop. Its rates are "
        "left out of SLOs until the counters rise again.",
        labels=scope.labels,
        links=links(scope.spec, alerts.COUNTER_INCONSISTENT, "engine"),
    )


def _mixed(scope: Scope) -> Alert:
    latency = scope.spec.latency
    return Alert(
        alerts.MIXED_BUCKETS,
        f"count by (model) ({uncommon_bounds(scope)}) > 0",
        "warning",
        f"{WHO}: engines have different histogram bounds",
        "Now: {{ $value }} bounds exist on some engines only. Wanted: 0, but for "
        f"{span(latency.mixed_bounds_for)} of a roll-out. Quantiles use the common ones and are coarser; latency SLOs "
        "leave out engines without the promised bound.",
        for_seconds=latency.mixed_bounds_for,
        labels=scope.labels,
        links=links(scope.spec, alerts.MIXED_BUCKETS, "engine"),
    )


def _off_scale(scope: Scope) -> Alert:
    latency = scope.spec.latency
    return Alert(
        alerts.LATENCY_OFF_SCALE,
        # What was counted before a saw-tooth was known for one stays in the window as long as the doubt.
        f"{scope.recorded(records.LATENCY_OFF_SCALE)} > {latency.off_scale_ratio:g}\n"
        f"unless on (model) {scope.recorded(records.INSTANCE_INCONSISTENT)}",
        "warning",
        f"{WHO}: {{{{ $labels.sli }}}} is off the scale of its histogram",
        "Now: {{ $value | humanizePercentage }} of observations are over the highest bucket bound. Wanted: at most "
        f"{percent(latency.off_scale_ratio)}; over that the P99 shown is only a lower limit. Read the mean and the share.",
        for_seconds=latency.off_scale_for,
        labels=scope.labels,
        links=links(scope.spec, alerts.LATENCY_OFF_SCALE, "engine"),
    )


def _probes(scope: Scope) -> Alert:
    scrapes = scope.spec.trust.scrapes
    known = scope.recorded(records.INSTANCE_MODEL)
    answered = f"avg_over_time({scope.raw(engine.PROBE_SUCCESS)}{window(scrapes.window)})"
    expr = promql(f"""
        {known} * on (instance) group_left () max by (instance) ({answered}) < {scrapes.min_success_ratio:g}
    """)
    return Alert(
        alerts.PROBES_FAILING,
        expr,
        "warning",
        f"{WHO}: only {{{{ $value | humanizePercentage }}}} of probes of {{{{ $labels.instance }}}} succeed",
        f"Now: {{{{ $value | humanizePercentage }}}} over {span(scrapes.window)}. Wanted: at least "
        f"{percent(scrapes.min_success_ratio)}. The engine's HTTP server "
        f"is too busy to answer in time, or it restarts; numbers of it have gaps{PROBE_NOTE}.",
        for_seconds=scrapes.for_,
        labels=scope.labels,
        links=links(scope.spec, alerts.PROBES_FAILING, "engine"),
    )


PROBE_NOTE = ", and windows are judged on what was read"
