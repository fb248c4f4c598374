"""The RAG and traces page: which stage do requests wait for, and where is a trace of one that did?"""

from dashboards.common import alert_annotation
from dashboards.grids import heatmap, rows_heatmap
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.rag_bands import generation, pools, retrieval
from dashboards.rag_common import (
    MODEL,
    RATE,
    SERVICE,
    SOURCE_RULES,
    SOURCE_SPANS,
    SPANS,
    linked,
    of,
    rows,
    traces_link,
)
from dashboards.steps import bad_above
from dashboards.style import GREEN, ORANGE, PURPLE, RED, Json, annotation, dashboard, query, variable
from slo.names import rag
from slo.names import rag_records as records
from slo.names.dashboards import RAG_UID
from slo.spec import Spec

IN_TURN = (*rag.STAGES, records.OTHER)


def build(spec: Spec) -> Json:
    """The RAG and traces page; promises and classes come from *spec*."""
    info = f"{rag.VERSION_INFO}{{{SERVICE}}}"
    return dashboard(
        uid=RAG_UID,
        title="RAG and traces: which stage do requests wait for?",
        description="Every stage of a retrieval-augmented request against its promise, and the traces behind it.",
        panels=lay_out(
            [_answer(spec), _stages(spec), _traces(spec), generation(spec), retrieval(spec), pools(spec)]
        ),
        variables=[
            variable("service", "Service", f"label_values({rag.REQUESTS}, service)"),
            variable("model", "Model", f"label_values({rag.ENGINE_STAGE}_count, model)"),
        ],
        annotations=[
            alert_annotation(),
            annotation(
                "Embedding versions",
                f"count by (service, version) ({info}) unless count by (service, version) ({info} offset 1m)",
                PURPLE,
                "Embedding version came into use",
                "{{service}}: {{version}}",
            ),
        ],
        tags=("rag", "traces"),
    )


def _quantile(stage: str, quantile: float) -> str:
    return f'stage="{stage}",quantile="{quantile:g}"'


def judged(spec: Spec, stage: str) -> str:
    """The judged quantile of one stage, in seconds; the slowest service."""
    return f"max({of(records.STAGE_SECONDS, _quantile(stage, spec.rag.judged_quantile))})"


def _stage(stage: str) -> str:
    return f'stage="{stage}"'


def over_promise(spec: Spec, stage: str) -> str:
    """The judged quantile of one stage over its threshold: 1 is just kept."""
    return f"{judged(spec, stage)} / {spec.rag.stage(stage).threshold_seconds:g}"


def _answer(spec: Spec) -> Band:
    name = f"P{spec.rag.judged_quantile * 100:g}"
    whole, network = spec.rag.stage(rag.STAGE_REQUEST), spec.rag.network
    named = " or ".join(
        f'label_replace({over_promise(spec, stage)}, "stage", "{stage}", "", "")' for stage in rag.STAGES
    )
    way = of(records.NETWORK, f'{records.LABEL_MEASURE}="{records.MEASURE_REQUEST}"', MODEL)
    return Band(
        5,
        [
            stat(
                "Whole request",
                f"What half, {spec.rag.judged_quantile:.0%} and more of the requests stay within; {name} is promised to be "
                f"at most {whole.threshold_seconds:g} s.",
                SOURCE_RULES,
                [query(f"max({of(records.STAGE_SECONDS, _quantile(rag.STAGE_REQUEST, q))})", f"P{q * 100:g}")
                 for q in spec.rag.quantiles],
                "s",
                steps=bad_above(whole.threshold_seconds),
                width=7,
                decimals=1,
                text="value_and_name",
                spark=False,
            ),
            stat(
                "Stage nearest its promise",
                f"The stage whose {name} fills most of its threshold; over 100 % it is broken.",
                SOURCE_RULES,
                [query(f"topk(1, {named})", "{{stage}}", instant=True)],
                "percentunit",
                steps=((None, GREEN), (0.8, ORANGE), (1, RED)),
                width=6,
                decimals=0,
                maximum=1000,
                text="value_and_name",
                spark=False,
            ),
            stat(
                "Where the time goes",
                "The stage that takes most of all requests' time, and its share.",
                SOURCE_RULES,
                [query(f"topk(1, avg by (stage) ({of(records.CRITICAL_STAGE)}))", "{{stage}}", instant=True)],
                "percentunit",
                width=5,
                decimals=0,
                text="value_and_name",
                spark=False,
            ),
            stat(
                "Between caller and engine",
                "Mean client-seen less server-seen time of an answer: network, waiting in front, serialisation.",
                "recording rules over callers' and the engine's spans",
                [query(f"max({way})")],
                "s",
                steps=bad_above(network.max_mean_seconds),
                width=6,
                decimals=0,
                no_value="not known",
            ),
        ],
    )  # fmt: skip


def _stages(spec: Spec) -> Band:
    name = f"P{spec.rag.judged_quantile * 100:g}"
    kept = rows("row", [(stage, over_promise(spec, stage)) for stage in (*rag.STAGES, rag.STAGE_REQUEST)])
    return Band(
        9,
        [
            rows_heatmap(
                f"Stage × time: {name} of its promise",
                f"{name} of each stage as part of its threshold in slo.yaml, in the order in which stages run, "
                "from below; the brightest cells are at their threshold or over it.",
                SOURCE_RULES,
                kept,
                "{{row}}",
                width=12,
                unit_words="a ratio, 100 % is the threshold",
            ),
            timeseries(
                "Share of the requests' time",
                "How a request's time divides into stages; other is time that no stage covers.",
                SOURCE_RULES,
                [query(f"avg({of(records.STAGE_SHARE, _stage(stage))})", stage) for stage in IN_TURN],
                "percentunit",
                width=12,
                stack=True,
                maximum=1,
            ),
        ],
        "Stages",
    )


def _traces(spec: Spec) -> Band:
    root = f'{rag.LABEL_SPAN_KIND}="{rag.KIND_SERVER}",{rag.LABEL_SPAN_STAGE}=""'
    buckets = f"{rag.SPAN_DURATION}_bucket"
    staged = of(rag.SPAN_CALLS, f'{rag.LABEL_SPAN_STAGE}!=""', SPANS)
    of_rag = f"group by ({rag.LABEL_SPAN_SERVICE}) ({staged})"
    whole = f"increase({of(buckets, root, SPANS)}[{RATE}]) and on ({rag.LABEL_SPAN_SERVICE}) {of_rag}"
    by = f"{rag.LABEL_SPAN_SERVICE}, {rag.LABEL_SPAN_STAGE}"
    own = f'{rag.LABEL_SPAN_STAGE}=~"{"|".join(rag.STAGES)}"'
    q, worst = spec.rag.judged_quantile, max(stage.max_error_ratio for stage in spec.rag.stages)
    return Band(
        9,
        [
            heatmap(
                "Requests by time",
                "How long requests took; each dot is one of them, click it for its trace in Jaeger.",
                f"{SOURCE_SPANS}, with exemplars",
                f"sum by (le) ({whole})",
                width=8,
            ),
            linked(
                timeseries(
                    "Latency of each stage",
                    f"P{q * 100:g} of each stage; dots are single spans, click one for its trace in Jaeger.",
                    f"{SOURCE_SPANS}, with exemplars",
                    [
                        query(
                            f"histogram_quantile({q:g}, sum by ({by}, le) (rate({of(buckets, own, SPANS)}[{RATE}])))",
                            f"{{{{{rag.LABEL_SPAN_STAGE}}}}} · {{{{{rag.LABEL_SPAN_SERVICE}}}}}",
                            exemplar=True,
                        )
                    ],
                    "s",
                    width=8,
                    many=True,
                ),
                traces_link(
                    "Traces with this stage",
                    f"${{__field.labels.{rag.LABEL_SPAN_SERVICE}}}",
                    f"rag.stage=${{__field.labels.{rag.LABEL_SPAN_STAGE}}}",
                ),
            ),
            linked(
                timeseries(
                    "Errors of each stage",
                    f"Share of each stage's spans in error, from {worst:.0%} on it is told; {rag.STAGE_REQUEST} is the whole.",
                    SOURCE_RULES,
                    [
                        query(
                            f"max by (service, stage) ({of(records.STAGE_ERRORS)})", "{{stage}} · {{service}}"
                        )
                    ],
                    "percentunit",
                    width=8,
                    many=True,
                ),
                traces_link(
                    "Traces in which this stage failed",
                    "${__field.labels.service}",
                    "rag.stage=${__field.labels.stage} error=true",
                ),
            ),
        ],
        "Traces",
    )
