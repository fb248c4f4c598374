"""Span metrics -> latency, errors and share of each RAG stage, and which stage the requests' time goes to.

The collector counts every span before it samples traces, so nothing here depends on the sampling. Bucket rates
are taken over one slow evaluation plus one scrape, as those of engines are, and summed over the window.
"""

from alerts.lint import SAMPLES_WANTED
from alerts.promql import promql, window
from alerts.rule import Record
from slo.names import labels
from slo.names import rag as names
from slo.names import rag_records as records
from slo.spec import Spec

OF_STAGE = f'{names.LABEL_SPAN_STAGE}!=""'
OF_REQUEST = f'{names.LABEL_SPAN_STAGE}="",{names.LABEL_SPAN_KIND}="{names.KIND_SERVER}"'
BY = "(service, stage)"
BUCKET, SUM = names.SPAN_DURATION + "_bucket", names.SPAN_DURATION + "_sum"


def step(spec: Spec) -> str:
    """The range over which bucket rates are taken: neighbouring ones meet without a gap, and hold enough scrapes."""
    times = spec.intervals
    meets = times.slow_evaluation_seconds + times.scrape_seconds
    return window(max(meets, SAMPLES_WANTED * times.scrape_seconds))


def renamed(expression: str, *labels_of: tuple[str, str]) -> str:
    """Return *expression* with labels copied, (from, to) each, where they have a value."""
    for source, target in labels_of:
        expression = f'label_replace({expression}, "{target}", "$1", "{source}", "(.+)")'
    return expression


def by_stage(metric: str, over: str, more: str = "", le: str = "", extra: str = "") -> str:
    """Rates of a span metric by service and stage; the SERVER span is stage "request".

    A service without a single stage is none of ours: an engine's spans have no stage.
    """
    keys = f"{names.LABEL_SPAN_SERVICE}, {names.LABEL_SPAN_STAGE}{le}"
    own = ",".join(part for part in (OF_STAGE, more) if part)
    root = ",".join(part for part in (OF_REQUEST, more) if part)
    stages = renamed(
        f"sum by ({keys}{extra}) (rate({metric}{{{own}}}{over}))",
        (names.LABEL_SPAN_SERVICE, labels.SERVICE),
        (names.LABEL_SPAN_STAGE, names.LABEL_STAGE),
    )
    whole = renamed(
        f"sum by ({keys}{extra}) (rate({metric}{{{root}}}{over}))",
        (names.LABEL_SPAN_SERVICE, labels.SERVICE),
    )
    known = f"group by ({names.LABEL_SPAN_SERVICE}) ({names.SPAN_CALLS}{{{OF_STAGE}}})"
    return promql(f"""
        sum by (service, stage{le}{extra}) (
          {stages}
          or label_replace({whole}, "{names.LABEL_STAGE}", "{names.STAGE_REQUEST}", "", "")
            and on ({names.LABEL_SPAN_SERVICE}) ({known})
        )
    """)


def stage_records(spec: Spec) -> tuple[Record, ...]:
    """Return buckets, quantiles, numbers, errors and shares of every stage, in the order of evaluation."""
    rag, over = spec.rag, window(spec.rag.window)
    failed = by_stage(names.SPAN_CALLS, over, f'{names.LABEL_SPAN_STATUS}="{names.STATUS_ERROR}"')
    every = f'{records.STAGE_BUCKET}{{le="+Inf"}}'
    return (
        Record(records.STAGE_BUCKET, by_stage(BUCKET, step(spec), le=", le")),
        *(
            Record(
                records.STAGE_SECONDS,
                f"histogram_quantile({q:g}, sum_over_time({records.STAGE_BUCKET}{over})\n"
                f"and on {BY} (sum_over_time({every}{over}) > 0))",
                {"quantile": f"{q:g}"},
            )
            for q in rag.quantiles
        ),
        Record(
            records.STAGE_REQUESTS,
            f"sum by {BY} (sum_over_time({every}{over})) * {spec.intervals.slow_evaluation_seconds}",
        ),
        Record(records.STAGE_CALLS, by_stage(names.SPAN_CALLS, over)),
        Record(
            records.STAGE_ERRORS,
            promql(f"({failed}\nor {records.STAGE_CALLS} * 0)\n/ ({records.STAGE_CALLS} > 0)"),
        ),
        Record(records.STAGE_TIME, by_stage(SUM, over)),
        *_shares(),
    )


def _shares() -> tuple[Record, ...]:
    stages = "|".join(names.STAGES)
    known = f'{records.STAGE_TIME}{{stage=~"{stages}"}}'
    whole = f'{records.STAGE_TIME}{{stage="{names.STAGE_REQUEST}"}} > 0'
    share = f'{records.STAGE_SHARE}{{stage!="{records.OTHER}"}}'
    return (
        Record(records.STAGE_SHARE, f"{known}\n/ on (service) group_left () (max by (service) ({whole}))"),
        # Stages that overlap may add up to more than the request.
        Record(
            records.STAGE_SHARE,
            f"clamp_min(1 - sum by (service) ({share}), 0)",
            {names.LABEL_STAGE: records.OTHER},
        ),
        Record(
            records.CRITICAL_STAGE,
            f"{records.STAGE_SHARE}\n== on (service) group_left () (max by (service) ({records.STAGE_SHARE}))",
        ),
    )


def retrieval_records(spec: Spec) -> tuple[Record, ...]:
    """Return retrieval latency by kind of query, and by the request rate at which it was measured."""
    over, quantile = window(spec.rag.window), f"{spec.rag.judged_quantile:g}"
    chosen = f'{records.STAGE_SECONDS}{{stage="{names.STAGE_RETRIEVAL}",quantile="{quantile}"}}'
    rate = f'{records.STAGE_REQUESTS}{{stage="{names.STAGE_REQUEST}"}} / {spec.rag.window}'
    return (
        Record(
            records.RETRIEVAL_BY_CLASS,
            f"histogram_quantile({quantile}, sum by (service, query_class, le) "
            f"(rate({names.RETRIEVAL_SECONDS}_bucket{over}))) >= 0",
            {"quantile": quantile},
        ),
        *(
            Record(
                records.RETRIEVAL_BY_RATE,
                f"{chosen}\nand on (service) ({rate} >= {low:g}{f' < {high:g}' if high is not None else ''})",
                {records.LABEL_RATE_CLASS: name},
            )
            for name, low, high in spec.rag.rate_classes()
        ),
    )


def version_records(spec: Spec) -> tuple[Record, ...]:
    """Return bucket rates by version of the embedding model, of the request and of the stages that name it."""
    version = names.LABEL_SPAN_VERSION
    rates = by_stage(BUCKET, step(spec), f'{version}!=""', le=", le", extra=f", {version}")
    named = renamed(rates, (version, names.LABEL_VERSION))
    return (Record(records.VERSION_BUCKET, promql(f"sum by (service, stage, version, le) ({named})")),)
