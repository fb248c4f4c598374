"""Raw counters -> good and bad events per second, the base that every SLO window is summed from.

Availability, once and for all: of the requests that the inference handlers answered with 2xx or 5xx,
those fail that got a 5xx or that the engine itself reports as failed or turned away. A failure is seen
by one of the two or by both, so an instance's failures are the larger of the two counts. 4xx are the
client's own; client aborts are seen by neither. While nothing serves a model, its requests are
counted as failed at the rate of the trailing hour, and never at less than one a probe.
"""

import re

from alerts.promql import le_matcher, promql, window
from alerts.rule import Record
from alerts.scope import Scope
from slo.names import canary, engine, labels, records
from slo.objectives import Slo

ANSWERED = 'code=~"2..|5.."'
SERVER_FAILED = 'code=~"5.."'
TRAILING_SECONDS = 3600
"""How far the imputed request rate looks back."""

CANARY_DURATIONS = {
    "request_duration": canary.REQUEST_DURATION,
    "time_to_first_token": canary.TIME_TO_FIRST_TOKEN,
}
"""Where the canary's own requests can be told slow or quick; elsewhere one token is always quick."""


def slo_labels(scope: Scope, slo: Slo) -> dict[str, str]:
    """Return Sloth's labels of an SLO, and the service."""
    return scope.labels | {
        labels.SLOTH_ID: f"{scope.service.id}-{slo.id}",
        labels.SLOTH_SERVICE: scope.service.id,
        labels.SLOTH_SLO: slo.id,
    }


def slo_matcher(scope: Scope, slo: Slo) -> str:
    """Return the label matcher that selects one SLO's series."""
    return f'{labels.SLOTH_ID}="{scope.service.id}-{slo.id}"'


def request_records(scope: Scope) -> tuple[Record, ...]:
    """Return request and failure rates, in the order in which they build on each other."""
    rules = [
        Record(records.INSTANCE_FAILURES, _instance_failures(scope), scope.labels),
        Record(records.INSTANCE_REQUESTS, _instance_requests(scope), scope.labels),
        Record(records.REQUESTS, _by_model(scope, records.INSTANCE_REQUESTS), scope.labels),
        Record(records.FAILURES, _by_model(scope, records.INSTANCE_FAILURES), scope.labels),
        Record(records.CANARY_REQUESTS, _canary(scope, _canary_successes(scope)), scope.labels),
    ]
    if first := next((slo for slo in scope.service.slos if slo.kind == "availability"), None):
        rules.append(Record(records.UNSERVED_REQUESTS, _unserved_requests(scope, first), scope.labels))
    return tuple(rules)


def sli_records(scope: Scope, slo: Slo) -> tuple[Record, ...]:
    """Return an SLO's rates of all events and of bad ones; after the request records."""
    return _availability(scope, slo) if slo.kind == "availability" else _latency(scope, slo)


def counted(scope: Scope, *selectors: str) -> str:
    """Return the rates of counters over the base window, their first appearance included.

    A counter that an engine creates at its first event has no earlier sample to rise from. Where the
    instance was probed well a window ago, the whole value is new; after a gap it is not.
    """
    ago = f"offset {scope.base_seconds}s"
    probed = f"{scope.raw(engine.PROBE_SUCCESS)} {ago} == 1"
    appeared = "\nor ".join(f"({one} > 0 unless {one} {ago})" for one in selectors)
    rates = "\n".join(f"or rate({one}{scope.base})" for one in selectors)
    return f"(({appeared})\nand on (instance) ({probed})) / {scope.base_seconds}\n{rates}"


def _http(scope: Scope, codes: str, answers: str) -> str:
    """Answers per second by instance without the canary's; may be slightly negative for a moment."""
    canaries = f"rate({scope.raw(canary.REQUESTS, codes)}{scope.base})"
    return promql(f"""
        sum by (instance) (
        {answers}
        )
        - on (instance)
          (sum by (instance) ({canaries}) or on (instance) {scope.recorded(records.INSTANCE_MODEL)} * 0)
    """)


def inference_handlers(scope: Scope) -> str:
    """Return the matcher of HTTP counts of the handlers that infer."""
    pattern = "|".join(re.escape(handler) for handler in scope.service.inference_handlers)
    return 'handler=~"' + pattern.replace("\\", "\\\\") + '"'


def _instance_requests(scope: Scope) -> str:
    """Where there are no HTTP counts (old engines), finished requests and rejections stand for them.

    Never less than what failed: a failure that the engine has counted may not be answered yet.
    """
    known = scope.recorded(records.INSTANCE_MODEL)
    answers = (
        f"rate({scope.raw(engine.HTTP_REQUESTS_TOTAL, inference_handlers(scope), ANSWERED)}{scope.base})"
    )
    finished, rejected = scope.raw(engine.REQUESTS_TOTAL), scope.raw(engine.ADMISSION_REJECTIONS_TOTAL)
    return promql(f"""
        {known} * on (instance) group_left () max by (instance) (
        label_replace(
        {_http(scope, ANSWERED, answers)}
        or
        sum by (instance) (rate({finished}{scope.base}) or rate({rejected}{scope.base}))
        , "seen_by", "server", "", "")
        or
        label_replace(max by (instance) ({scope.recorded(records.INSTANCE_FAILURES)}), "seen_by", "failures", "", "")
        )
        or on (instance) {known} * 0
    """)


def _instance_failures(scope: Scope) -> str:
    """The larger of what the HTTP server answered with 5xx and what the engine reports."""
    known = scope.recorded(records.INSTANCE_MODEL)
    answers = counted(scope, scope.raw(engine.HTTP_REQUESTS_TOTAL, inference_handlers(scope), SERVER_FAILED))
    reported = counted(
        scope,
        scope.raw(engine.REQUESTS_TOTAL, 'finish_reason="error"'),
        scope.raw(engine.ADMISSION_REJECTIONS_TOTAL),
    )
    return promql(f"""
        {known} * on (instance) group_left () max by (instance) (
        label_replace(
        {_http(scope, SERVER_FAILED, answers)}
        , "seen_by", "server", "", "")
        or
        label_replace(sum by (instance) (
        {reported}
        ), "seen_by", "engine", "", "")
        )
        or on (instance) {known} * 0
    """)


def trusted(scope: Scope, vector: str) -> str:
    """Return the vector without instances whose counters fall again and again: their rates are no traffic."""
    return f"{vector} unless on (instance) {scope.recorded(records.INSTANCE_INCONSISTENT)}"


def _by_model(scope: Scope, record: str) -> str:
    return f"sum by (model) ({trusted(scope, scope.recorded(record))})"


def _canary(scope: Scope, series: str) -> str:
    """Canary events per second by the model of the engine that they went to."""
    known = scope.recorded(records.INSTANCE_MODEL)
    return f"sum by (model) ({known} * on (instance) group_left () sum by (instance) (rate({series}{scope.base})))"


def _unserved_requests(scope: Scope, slo: Slo) -> str:
    """What is lost counts in the trailing rate too, so that a long outage does not talk itself small."""
    per_probe = f"{1 / scope.spec.intervals.scrape_seconds:g}"
    total = scope.recorded(records.TOTAL_EVENTS, slo_matcher(scope, slo))
    unserved = scope.recorded(records.UNSERVED)
    return promql(f"""
        {unserved} * on (model) group_left ()
        clamp_min(max by (model) (avg_over_time({total}{window(TRAILING_SECONDS)})), {per_probe})
        or {unserved} * {per_probe}
    """)


def _availability(scope: Scope, slo: Slo) -> tuple[Record, ...]:
    """Rates outlive an engine by a base window, so what is lost stands in their place, not on top.

    It stands alone where there are no rates: the exporter is gone, and what serves nothing is charged on.
    """
    lost = scope.recorded(records.UNSERVED_REQUESTS)
    requests, failures = scope.recorded(records.REQUESTS), scope.recorded(records.FAILURES)
    names = slo_labels(scope, slo)
    return (
        Record(records.TOTAL_EVENTS, f"({lost} > {requests})\nor {requests}\nor {lost} > 0", names),
        Record(records.BAD_EVENTS, f"({lost} > {failures})\nor {failures}\nor {lost} > 0", names),
    )


def _latency(scope: Scope, slo: Slo) -> tuple[Record, ...]:
    """Only the count and the bucket at the threshold; engines without that bound are left out."""
    if slo.sli is None or slo.threshold_seconds is None:
        raise ValueError(f"slo.yaml: slos.{slo.id}: a latency SLO needs sli and threshold_seconds; add them")
    family, bound = HISTOGRAMS[slo.sli], le_matcher(slo.threshold_seconds)
    bucket, count = scope.raw(family + "_bucket", bound), scope.raw(family + "_count")
    judged = f"(rate({count}{scope.base}) and ignoring (le) {bucket})"
    durations = CANARY_DURATIONS.get(slo.sli)
    quick = scope.raw(durations + "_bucket", bound) if durations else _canary_successes(scope)
    names = slo_labels(scope, slo)
    return (
        Record(
            records.TOTAL_EVENTS,
            _without_canary(scope, judged, scope.recorded(records.CANARY_REQUESTS)),
            names,
        ),
        Record(
            records.BAD_EVENTS,
            f"{scope.recorded(records.TOTAL_EVENTS, slo_matcher(scope, slo))}\n- on (model) group_left ()\n"
            + _without_canary(scope, f"rate({bucket}{scope.base})", _canary(scope, quick)),
            names,
        ),
    )


def _canary_successes(scope: Scope) -> str:
    return scope.raw(canary.REQUESTS, 'result="ok"')


def _without_canary(scope: Scope, rates: str, canaries: str) -> str:
    return promql(f"""
        sum by (model) (
          sum by (model) ({trusted(scope, rates)})
          or label_replace(-{canaries}, "part", "canary", "", "")
        )
    """)


HISTOGRAMS = {
    "time_to_first_token": engine.TIME_TO_FIRST_TOKEN_SECONDS,
    "inter_token_latency": engine.INTER_TOKEN_LATENCY_SECONDS,
    "time_per_output_token": engine.TIME_PER_OUTPUT_TOKEN_SECONDS,
    "request_duration": engine.REQUEST_DURATION_SECONDS,
    "request_queue": engine.REQUEST_QUEUE_SECONDS,
    "request_prefill": engine.REQUEST_PREFILL_SECONDS,
    "request_decode": engine.REQUEST_DECODE_SECONDS,
}
"""SLI name (a key of slo.buckets) -> canonical histogram."""
