"""Raw series -> what is known of each engine instance: its model, whether it is down or hung.

The model is remembered while an instance does not answer, because its series are gone exactly then. While the
exporter does not answer, what was last known of the instance stands as long as it is in service discovery.
"""

from alerts.promql import promql, window
from alerts.rule import Record
from alerts.scope import Scope
from slo.names import canary, engine, labels, records
from slo.spec import Spec

UP_JOBS = f'job=~"{labels.JOB_ENGINE}|{labels.JOB_DIRECT}"'
EXPORTER_UP = f'job="{labels.JOB_ENGINE}"'
"""Only our exporter's targets can go unasked: a direct one has the word of its own scrape."""

NEW, MET = f'model="{labels.MODEL_UNKNOWN}"', f'model!="{labels.MODEL_UNKNOWN}"'
"""Instances that never answered since they are watched, and those that did."""

UNREADABLE_REASONS = (engine.REASON_TOO_LARGE, engine.REASON_MALFORMED, engine.REASON_NO_ENGINE_METRICS)
"""The engine answers, but what it says cannot be used: not down, but not known to be well either."""

LATE_REASONS = (engine.REASON_TIMEOUT, labels.DIRECT_REASON_NO_ANSWER)
"""A busy server may be late for one probe."""


def instance_records(scope: Scope) -> tuple[Record, ...]:
    """Return the records of single instances, in the order in which they build on each other."""
    return (
        Record(records.INSTANCE_MODELS, _models(scope), scope.labels),
        Record(records.INSTANCE_MODEL, _model(scope), scope.labels),
        Record(records.INSTANCE_DOWN, _down(scope), scope.labels),
        Record(records.RANK_STANDING_REQUESTS, _standing(scope), scope.labels),
        Record(records.RANK_STUCK_REQUESTS, _stuck(scope), scope.labels),
        Record(
            records.INSTANCE_STUCK_REQUESTS,
            f"sum by (instance, model) ({scope.recorded(records.RANK_STUCK_REQUESTS)}) > 0",
            scope.labels,
        ),
        Record(records.UNSERVED, _unserved(scope), scope.labels),
    )


def silence_seconds(spec: Spec) -> float:
    """Return the most seconds until an engine that accepts and never answers is known for down, without the scrape.

    Timeouts fill the base window, and the canary's next request has failed.
    """
    return max(
        float(spec.intervals.base_window_seconds), spec.canary.interval_seconds + spec.canary.timeout_seconds
    )


def _models(scope: Scope) -> str:
    running, info = (
        scope.raw(engine.REQUESTS_RUNNING, 'model!=""'),
        scope.raw(engine.ENGINE_INFO, 'model!=""'),
    )
    return f"group by (instance, model) ({running} or {info})"


def _model(scope: Scope) -> str:
    """One model an instance: what it serves now, else what it served before its probes failed.

    After a restart of Prometheus two memories may be there; two models of one instance would break every join on it.
    """
    now, probes = scope.recorded(records.INSTANCE_MODELS), scope.raw(engine.PROBE_SUCCESS)
    several = f"count by (instance) ({now}) > 1"
    return promql(f"""
        group by (instance, model) (
          ({now} unless on (instance) ({several}))
          or on (instance)
            label_replace({several}, "model", "{labels.MODEL_SEVERAL}", "", "")
          or on (instance)
            topk by (instance) (1, group by (instance, model) (
              {scope.recorded(records.INSTANCE_DOWN, MET)} and on (instance) ({probes} == 0)
            ))
          or on (instance)
            label_replace(group by (instance) ({probes}), "model", "{labels.MODEL_UNKNOWN}", "", "")
        )
    """)


def _down(scope: Scope) -> str:
    """A busy server may miss a probe: timeouts count once they fill the base window, a refusal at once.

    While the canary's requests are answered the engine serves, however late its metrics are.
    """
    known, probes = scope.recorded(records.INSTANCE_MODEL), scope.raw(engine.PROBE_SUCCESS)
    unreadable = scope.raw(engine.PROBE_FAILURE, f'reason=~"{"|".join(UNREADABLE_REASONS)}"')
    late = scope.raw(engine.PROBE_FAILURE, f'reason=~"{"|".join(LATE_REASONS)}"')
    recent = f"time() - {scope.raw(canary.LAST_SUCCESS)} < {scope.spec.canary.failing_after}"
    serves = f"max by (instance) ({scope.raw(canary.SUCCESS)} == 1 and on (instance) {recent})"
    return promql(f"""
        (
          {known} * on (instance) group_left () (max by (instance) ({probes}) == bool 0)
          unless on (instance) (max by (instance) ({unreadable}) == 1)
          unless on (instance) (
            (max by (instance) ({late}) == 1)
            and on (instance) (
              max by (instance) (max_over_time({probes}{scope.base})) == 1
              or {serves}
            )
          )
        )
        or on (instance) {known} * 0
        or on (instance) ({scope.recorded(records.INSTANCE_DOWN)} and on (instance) ({_unasked(scope)}))
    """)


def _unasked(scope: Scope) -> str:
    """Targets of which the exporter says nothing: it does not answer."""
    return f"{scope.raw('up', EXPORTER_UP)} unless on (instance) {scope.raw(engine.PROBE_SUCCESS)}"


def steps_rate(scope: Scope, span: str) -> str:
    """Return engine steps per second by rank; generated tokens where the engine does not count steps."""
    by = "sum by (instance, model, dp_rank)"
    return promql(f"""
        {by} (rate({scope.raw(engine.ITERATION_TOKENS + "_count")}{span}))
        or {by} (rate({scope.raw(engine.GENERATION_TOKENS_TOTAL)}{span}))
    """)


def _standing(scope: Scope) -> str:
    """The gauges of a hung engine freeze: work that stands through the window while no step is counted."""
    span = window(scope.spec.states.hung.window)
    by = "sum by (instance, model, dp_rank)"
    running, waiting = scope.raw(engine.REQUESTS_RUNNING), scope.raw(engine.REQUESTS_WAITING)
    steps = " ".join(steps_rate(scope, span).split())
    return promql(f"""
        (
          ({by} (min_over_time({running}{span})) + {by} (min_over_time({waiting}{span})))
          or {by} (min_over_time({running}{span}))
        )
        * (({steps}) == bool 0)
    """)


def _stuck(scope: Scope) -> str:
    """A rank that steps, or has nothing to do, is not stuck, however few scrapes say so; that it is takes a full window.

    After a gap in what the exporter says, what was known before it stands until the window is full again.
    """
    hung = scope.spec.states.hung
    span = window(hung.window)
    fewest = max(2, hung.window // scope.spec.intervals.scrape_seconds - 1)
    rank = "(instance, model, dp_rank)"
    standing, probes = scope.recorded(records.RANK_STANDING_REQUESTS), scope.raw(engine.PROBE_SUCCESS)
    return promql(f"""
        ({standing} and on {rank} count_over_time({scope.raw(engine.REQUESTS_RUNNING)}{span}) >= {fewest})
        or {standing} == 0
        or on {rank} (
          {scope.recorded(records.RANK_STUCK_REQUESTS)}
          unless on (instance) ({probes} == 0 or count_over_time({probes}{span}) >= {fewest})
          and on (instance) {scope.raw("up", EXPORTER_UP)}
        )
    """)


def _unserved(scope: Scope) -> str:
    """An engine serves as long as one of its ranks does, and each of the models that it shows.

    What never answered is no outage beside an engine whose model is known: it may be loading.
    """
    down, known = scope.recorded(records.INSTANCE_DOWN), scope.recorded(records.INSTANCE_MODEL)
    of_several = scope.recorded(records.INSTANCE_DOWN, f'model="{labels.MODEL_SEVERAL}"')
    return promql(f"""
        (
          (
            min by (model) (
              min by (instance, model) ({scope.recorded(records.RANK_STUCK_REQUESTS)}) > 0
              or on (instance, model) {down}
              or on (instance, model)
                {scope.recorded(records.INSTANCE_MODELS)} * on (instance) group_left () ({of_several} == 0)
            ) > 0
          ) > bool 0
          or group by (model) ({known}) * 0
        )
        unless on (model) (
          {scope.recorded(records.INSTANCE_DOWN, NEW)} and on () {scope.recorded(records.INSTANCE_DOWN, MET)}
        )
    """)
