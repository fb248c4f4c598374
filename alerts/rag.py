"""slo.yaml's RAG promises -> rules: records, and alerts of which one slow stage makes one notification.

None of them has a sample where no RAG service is scraped and no span with a stage was ever counted.
"""

from alerts.promql import promql, window
from alerts.rag_records import BY, retrieval_records, stage_records, version_records
from alerts.rag_service_records import POOL, engine_records, service_records
from alerts.rag_version_alert import version_alert
from alerts.rule import Alert, Group, Severity
from alerts.texts import Page, links, looked_up, percent, span
from slo.names import alerts, labels
from slo.names import rag as names
from slo.names import rag_records as records
from slo.rag import Stage
from slo.spec import Spec

POOL_FULL = (
    f"{{{{ with printf `{records.POOL_USE}{{service=%q,stage=%q}} > MAX` $labels.service $labels.stage | query }}}}"
    "{{ with first . }} Its pool is {{ .Value | humanizePercentage }} in use.{{ end }}{{ end }}"
)
"""` Its pool is 97 % in use.`; empty where it is not."""
WAIT_AND_USE = (
    f"{{{{ with printf `{records.POOL_WAIT}{{service=%q,pool=%q,quantile=%q}}` $labels.service $labels.pool `Q95` "
    "| query }}{{ with first . }}Callers wait {{ .Value | humanizeDuration }}. {{ end }}{{ end }}"
    f"{{{{ with printf `{records.POOL_USE}{{service=%q,pool=%q}}` $labels.service $labels.pool | query }}}}"
    "{{ with first . }}{{ .Value | humanizePercentage }} of the connections are in use. {{ end }}{{ end }}"
)
"""`Callers wait 120ms. 97 % of the connections are in use. `, as far as either is known."""
FAILING_STAGES = (
    f"{{{{ with printf `{records.STAGE_ERRORS}{{service=%q,stage!=%q}} > 0` $labels.service "
    f"`{names.STAGE_REQUEST}` | query }}}}{{{{ range . }}}} {{{{ .Labels.stage }}}} "
    "{{ .Value | humanizePercentage }};{{ end }}{{ end }}"
)


def rag_groups(spec: Spec) -> tuple[Group, ...]:
    """Return the groups of every RAG service: what pages at every evaluation, the rest slowly."""
    times = spec.intervals
    return (
        Group("rag-base", times.evaluation_seconds, _pages(spec)),
        Group(
            "rag-stages",
            times.slow_evaluation_seconds,
            (*stage_records(spec), *retrieval_records(spec), *version_records(spec), *_stage_alerts(spec)),
        ),
        Group(
            "rag-service",
            times.slow_evaluation_seconds,
            (
                *service_records(spec),
                *engine_records(spec),
                _spans_missing(spec),
                *_pool_alerts(spec),
                *_context_alerts(spec),
                _network_alert(spec),
                version_alert(spec),
            ),
        ),
    )


def _alert(
    spec: Spec,
    name: str,
    expr: str,
    severity: Severity,
    summary: str,
    description: str,
    for_seconds: int,
    stage: str = "",
    page: Page = "rag",
) -> Alert:
    return Alert(
        name,
        promql(expr),
        severity,
        summary,
        description,
        for_seconds=for_seconds,
        labels={names.LABEL_STAGE: stage} if stage else {},
        links=links(spec, name, page),
    )


def _pages(spec: Spec) -> tuple[Alert, Alert]:
    failing, over = spec.states.failing, window(spec.states.failing.window)
    every = f"sum by (service) (increase({names.REQUESTS}{over}))"
    errors = f'sum by (service) (increase({names.REQUESTS}{{{names.LABEL_OUTCOME}="error"}}{over}))'
    patience = spec.stack.exporter_down.for_
    instances = looked_up(f'count(up{{job="{names.JOB_RAG}",service=%q}})', labels.SERVICE)
    return (
        _alert(
            spec,
            alerts.RAG_SERVICE_DOWN,
            f'max by (service) (up{{job="{names.JOB_RAG}"}}) == 0',
            "page",
            "{{ $labels.service }}: no instance of the RAG service answers",
            f"Now: 0 of {instances} instances answered for over {span(patience)}. Promised: an answer to every scrape, one every "
            f"{span(spec.intervals.scrape_seconds)}. Its users get none either.",
            patience,
        ),
        _alert(
            spec,
            alerts.RAG_REQUESTS_FAILING,
            f"{errors} / ({every} > 0) >= {failing.min_error_ratio:g}\nand {errors} >= {failing.min_bad_events:g}",
            "page",
            "{{ $labels.service }}: {{ $value | humanizePercentage }} of RAG requests fail",
            f"Now: {{{{ $value | humanizePercentage }}}} over {span(failing.window)}. Wanted: under "
            f"{percent(failing.min_error_ratio)}, from where on it is an outage. Stages that fail:{FAILING_STAGES}",
            failing.for_,
        ),
    )


def _stage_alerts(spec: Spec) -> tuple[Alert, ...]:
    return tuple(
        alert
        for stage in spec.rag.stages
        for alert in (
            (_request_slow(spec, stage),)
            if stage.id == names.STAGE_REQUEST
            else (_slow(spec, stage), _failing(spec, stage))
        )
    )


def _over(spec: Spec, stage: Stage) -> str:
    """The judged quantile, where it is over the threshold and there were enough requests to have one."""
    quantile = f"{spec.rag.judged_quantile:g}"
    own = f'stage="{stage.id}"'
    return (
        f'max by {BY} ({records.STAGE_SECONDS}{{{own},quantile="{quantile}"}}) > {stage.threshold_seconds:g}\n'
        f"and on {BY} ({records.STAGE_REQUESTS}{{{own}}} >= {spec.rag.min_requests:g})"
    )


def _promise(spec: Spec, stage: Stage) -> str:
    rag = spec.rag
    return (
        f"Now: P{rag.judged_quantile * 100:g} {{{{ $value | humanizeDuration }}}} over {span(rag.window)}. Promised: "
        f"{percent(rag.judged_quantile)} within {stage.threshold_seconds:g} s, judged from {rag.min_requests:g} of them "
        f"on. {stage.why}"
    )


def _slow(spec: Spec, stage: Stage) -> Alert:
    full = POOL_FULL.replace("MAX", f"{spec.rag.pool.max_use_ratio:g}")
    return _alert(
        spec,
        alerts.RAG_STAGE_SLOW,
        _over(spec, stage),
        "ticket",
        f"{{{{ $labels.service }}}}: stage {{{{ $labels.stage }}}} is slow, "
        f"P{spec.rag.judged_quantile * 100:g} {{{{ $value | humanizeDuration }}}}",
        f"{_promise(spec, stage)}{full}",
        spec.rag.for_,
        stage.id,
    )


def _request_slow(spec: Spec, stage: Stage) -> Alert:
    critical = (
        f"{{{{ with printf `{records.CRITICAL_STAGE}{{service=%q}}` $labels.service | query }}}}{{{{ with first . }}}}"
        " Most of it goes to {{ .Labels.stage }} ({{ .Value | humanizePercentage }}).{{ end }}{{ end }}"
    )
    return _alert(
        spec,
        alerts.RAG_REQUEST_SLOW,
        _over(spec, stage),
        "ticket",
        f"{{{{ $labels.service }}}}: RAG requests are slow, P{spec.rag.judged_quantile * 100:g} "
        "{{ $value | humanizeDuration }}",
        f"{_promise(spec, stage)}{critical}",
        spec.rag.for_,
    )


def _failing(spec: Spec, stage: Stage) -> Alert:
    own = f'stage="{stage.id}"'
    return _alert(
        spec,
        alerts.RAG_STAGE_FAILING,
        f"{records.STAGE_ERRORS}{{{own}}} > {stage.max_error_ratio:g}\n"
        f"and on {BY} ({records.STAGE_REQUESTS}{{{own}}} >= {spec.rag.min_requests:g})",
        "ticket",
        "{{ $labels.service }}: {{ $value | humanizePercentage }} of stage {{ $labels.stage }} fail",
        f"Now: {{{{ $value | humanizePercentage }}}} over {span(spec.rag.window)}. Promised: at most "
        f"{percent(stage.max_error_ratio)}, judged from {spec.rag.min_requests:g} of them on. The spans' error.type says how.",
        spec.rag.for_,
        stage.id,
    )


def _spans_missing(spec: Spec) -> Alert:
    over = window(spec.rag.window)
    return _alert(
        spec,
        alerts.RAG_SPANS_MISSING,
        f"sum by (service) (increase({names.REQUESTS}{over})) >= {spec.rag.min_requests:g}\n"
        f'unless on (service) ({records.STAGE_REQUESTS}{{stage="{names.STAGE_REQUEST}"}} > 0)',
        "ticket",
        "{{ $labels.service }}: requests are answered and no spans of them are counted",
        f"Now: {{{{ $value | humanize }}}} requests in {span(spec.rag.window)} and 0 SERVER spans with stages below them. "
        "Wanted: one for each request, whatever is sampled. Whether its stages keep their promises is unknown, "
        "which is not the same as yes.",
        spec.rag.spans_missing_for,
    )


def _pool_alerts(spec: Spec) -> tuple[Alert, Alert]:
    pool, quantile = spec.rag.pool, f"{spec.rag.judged_quantile:g}"
    waits = f'max by {POOL} ({records.POOL_WAIT}{{quantile="{quantile}"}}) > {pool.max_wait_seconds:g}'
    full = f"{records.POOL_USE} > {pool.max_use_ratio:g}"
    resets = f"sum by (service, pool) (increase({names.POOL_RESETS}{window(spec.rag.window)}))"
    return (
        _alert(
            spec,
            alerts.RAG_POOL_EXHAUSTED,
            f"{waits}\nor on {POOL} {full}",
            "ticket",
            "{{ $labels.service }}: pool {{ $labels.pool }} is exhausted",
            f"Now: {WAIT_AND_USE.replace('Q95', quantile)}Promised: {percent(spec.rag.judged_quantile)} of acquisitions "
            f"wait at most {pool.max_wait_seconds:g} s and at most {percent(pool.max_use_ratio)} of the connections "
            f"are in use, over {span(spec.rag.window)}.",
            pool.for_,
        ),
        _alert(
            spec,
            alerts.RAG_KEEPALIVE_RESETS,
            f"{records.POOL_RESETS} > {pool.max_resets_ratio:g}\n"
            f"and on (service, pool) ({resets} >= {pool.min_resets:g})",
            "warning",
            "{{ $labels.service }}: {{ $value | humanizePercentage }} of connections from pool {{ $labels.pool }} "
            "were dead",
            f"Now: {{{{ $value | humanizePercentage }}}} of acquisitions over {span(spec.rag.window)} met a connection that "
            f"the other side had closed. Wanted: at most {percent(pool.max_resets_ratio)}, judged from "
            f"{pool.min_resets:g} resets on. Each costs a "
            "second try, and a request that may not be repeated fails.",
            pool.for_,
        ),
    )


def _context_alerts(spec: Spec) -> tuple[Alert, Alert]:
    cache, cut = spec.rag.cache, spec.rag.truncation
    return (
        _alert(
            spec,
            alerts.RAG_CACHE_HIT_COLLAPSED,
            f"{records.CACHE_HIT}\n< on (service, level) "
            f"(({records.CACHE_USUAL} >= {cache.judged_from_ratio:g}) * {cache.fall_to_ratio:g})",
            "warning",
            "{{ $labels.service }}: cache {{ $labels.level }} answers only {{ $value | humanizePercentage }} of lookups",
            f"Now: {{{{ $value | humanizePercentage }}}} over {span(spec.rag.window)}. Wanted: at least "
            f"{percent(cache.fall_to_ratio)} of its median over {span(cache.lookback)}, where that was at least "
            f"{percent(cache.judged_from_ratio)}; judged from {cache.min_lookups:g} lookups on. What it no longer "
            "answers, the stages below have to.",
            cache.for_,
        ),
        _alert(
            spec,
            alerts.RAG_CONTEXT_TRUNCATED,
            f"{records.TRUNCATED} > {cut.max_ratio:g}",
            "warning",
            "{{ $labels.service }}: {{ $value | humanizePercentage }} of contexts are cut to fit",
            f"Now: {{{{ $value | humanizePercentage }}}} over {span(cut.window)}. Wanted: at most {percent(cut.max_ratio)}, "
            f"judged from {cut.min_contexts:g} contexts on. Answers are given without what was cut.",
            cut.for_,
        ),
    )


def _network_alert(spec: Spec) -> Alert:
    network = spec.rag.network
    return _alert(
        spec,
        alerts.NETWORK_SLOW,
        f"{records.NETWORK} > {network.max_mean_seconds:g}",
        "warning",
        "{{ $value | humanizeDuration }} of each answer{{ with $labels.model }} of {{ . }}{{ end }} pass between "
        "caller and engine ({{ $labels.measure }})",
        f"Now: {{{{ $value | humanizeDuration }}}}, the mean time that the client sees less that of the server, over "
        f"{span(spec.rag.window)}. Promised: at most {network.max_mean_seconds:g} s. It is network, queues in front of "
        "the engine, serialisation; unknown while the two sides count numbers of requests more than "
        f"{percent(network.max_count_difference_ratio)} apart.",
        network.for_,
        page="network",
    )
