"""The lower bands of the RAG page: generation, retrieval and versions, pools, caches and context."""

from dashboards.grids import matrix, rows_heatmap, table
from dashboards.layout import Band
from dashboards.panels import bar_gauge, timeseries
from dashboards.rag_common import MODEL, RATE, SOURCE_RULES, SOURCE_SERVICE, of, rows
from dashboards.steps import bad_above, states
from dashboards.style import RED, ModernPanel, query
from slo.duration import format_seconds
from slo.names import analysis, rag
from slo.names import rag_records as records
from slo.spec import Spec


def generation(spec: Spec) -> Band:
    """What length does, and where a generation's time goes once it left the service."""
    hit = [
        (f"{name} tokens", f"avg({of(records.KV_HIT, _is(rag.LABEL_LENGTH_CLASS, name))})")
        for name in rag.LENGTH_CLASSES
    ]
    quantile = _is("quantile", f"{spec.rag.judged_quantile:g}")
    engine = of(records.ENGINE_SECONDS, f'stage=~"{"|".join(rag.ENGINE_STAGES_IN_TURN)}",{quantile}', MODEL)
    tokens = f"avg by (context_class, seconds) ({of(records.CONTEXT_LATENCY)})"
    return Band(
        9,
        [
            matrix(
                "Context length × latency",
                "How the generation time of prompts of one length spreads. Read it as: a row is the prompt's length "
                "(tokens, from), a column the time its caller saw (seconds, from); each row adds up to 100 %, darker "
                "is more requests.",
                SOURCE_SERVICE,
                f'label_replace({tokens}, "tokens", "$1", "context_class", "([0-9]+).*")',
                row="tokens",
                column="seconds",
                width=8,
                colour="continuous-blues",
                mappings=states({0: ("·", "transparent")}),
                numeric=True,
            ),
            rows_heatmap(
                "KV hit rate × sequence length",
                "Share of prompt tokens that the engine found in its KV cache, by the prompt's length, as the usage "
                "in its answers says.",
                SOURCE_SERVICE,
                rows("length", hit),
                "{{length}}",
                width=8,
                scheme="RdYlGn",
                reverse=True,
                reads="from short below to long above; green was found, red was computed again",
            ),
            timeseries(
                "In the engine, and on the way",
                f"P{spec.rag.judged_quantile * 100:g} of the engine's own stages, and the mean time between it and "
                "its caller: for the whole answer and for the first token.",
                "recording rules over the engine's llm_request spans and its callers'",
                [
                    query(f"max by (stage) ({engine})", "{{stage}}"),
                    query(f"max by (measure) ({of(records.NETWORK, '', MODEL)})", "on the way, {{measure}}"),
                ],
                "s",
                width=8,
                many=True,
                minimum=None,
            ),
        ],
        "Generation",
    )


def _is(label: str, value: str) -> str:
    return f'{label}="{value}"'


def retrieval(spec: Spec) -> Band:
    """How retrieval answers to load, and the embedding versions side by side."""
    promised = spec.rag.stage(rag.STAGE_RETRIEVAL).threshold_seconds
    name = f"P{spec.rag.judged_quantile * 100:g}"
    by_rate = [
        query(
            f"max(avg_over_time({of(records.RETRIEVAL_BY_RATE, _is(records.LABEL_RATE_CLASS, one))}[$__range]))",
            f"{one} req/s",
            instant=True,
        )
        for one, _, _ in spec.rag.rate_classes()
    ]
    by_kind = query(
        f"max by (query_class) (avg_over_time({of(records.RETRIEVAL_BY_CLASS)}[$__range]))",
        "{{query_class}} queries",
        instant=True,
    )
    return Band(
        8,
        [
            bar_gauge(
                "Retrieval by request rate and kind of query",
                f"Mean {name} of retrieval while requests came at that rate, and of each kind of query, over the "
                f"chosen time; what has no bar was never seen. Promised are {promised:g} s.",
                f"{SOURCE_RULES}; the kinds from the RAG service's /metrics",
                [*by_rate, by_kind],
                "s",
                steps=bad_above(promised),
                width=10,
                decimals=1,
            ),
            _versions(spec),
        ],
        "Retrieval and embedding versions",
    )


def _versions(spec: Spec) -> ModernPanel:
    versions, name = spec.rag.versions, f"P{spec.rag.judged_quantile * 100:g}"
    which = f"service, stage, {analysis.LABEL_VERSION}"
    bounds = [
        query(
            f"max by ({which}) ({of(analysis.VERSION_LATENCY, _is(analysis.LABEL_BOUND, bound))})",
            instant=True,
            format="table",
        )
        for bound in (analysis.BOUND_ESTIMATE, analysis.BOUND_LOWER, analysis.BOUND_UPPER)
    ]
    requests = query(f"max by ({which}) ({of(analysis.VERSION_REQUESTS)})", instant=True, format="table")
    columns = {
        "stage": "Stage",
        "version": "Version",
        "Value #A": name,
        "Value #B": "From",
        "Value #C": "To",
        "Value #D": "Requests",
    }
    return table(
        "Embedding versions side by side",
        f"{name} by version with its {versions.confidence:.0%} confidence interval, over "
        f"{format_seconds(versions.lookback)}; – is fewer than {versions.min_requests} requests. Intervals that lie "
        "apart are a difference; RagVersionWorse judges its size.",
        "exporters/analysis over span metrics",
        [*bounds, requests],
        width=14,
        unit="s",
        decimals=1,
        transformations=[
            {"id": "merge", "options": {}},
            {"id": "sortBy", "options": {"fields": {}, "sort": [{"field": "stage"}]}},
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True, "service": True},
                    "indexByName": {column: n for n, column in enumerate(columns)},
                    "renameByName": columns,
                },
            },
        ],
        overrides=[
            {
                "matcher": {"id": "byName", "options": "Requests"},
                "properties": [{"id": "unit", "value": "short"}, {"id": "decimals", "value": 0}],
            }
        ],
    )


def pools(spec: Spec) -> Band:
    """Waiting for connections, how many are in use, what caches answer and what contexts lose."""
    pool, cut, refused = spec.rag.pool, spec.rag.truncation, of(rag.VECTORS_REJECTED)
    quantile = _is("quantile", f"{spec.rag.judged_quantile:g}")
    return Band(
        8,
        [
            timeseries(
                "Wait for a connection",
                f"P{spec.rag.judged_quantile * 100:g} of the wait at each pool; it counts as the stage's time.",
                SOURCE_SERVICE,
                [query(f"max by (pool) ({of(records.POOL_WAIT, quantile)})", "{{pool}}")],
                "s",
                width=8,
                limits=((pool.max_wait_seconds, RED),),
                many=True,
            ),
            timeseries(
                "Connections in use",
                "Share of each pool's connections that are in use, and of those taken the share found dead "
                "(resets).",
                SOURCE_SERVICE,
                [
                    query(f"max by (pool) ({of(records.POOL_USE)})", "{{pool}}"),
                    query(f"max by (pool) ({of(records.POOL_RESETS)})", "{{pool}} resets"),
                ],
                "percentunit",
                width=8,
                maximum=1,
                limits=((pool.max_use_ratio, RED),),
                many=True,
            ),
            timeseries(
                "Caches and context",
                "Lookups that each cache level answered, requests whose vector was of no use, and contexts that were "
                f"cut to fit; over {cut.max_ratio:.0%} of those warns.",
                SOURCE_SERVICE,
                [
                    query(f"min by (level) ({of(records.CACHE_HIT)})", "{{level}} hits"),
                    query(f"max({of(records.TRUNCATED)})", "contexts cut"),
                    query(f"sum(rate({refused}[{RATE}])) / sum({of(records.REQUESTS)})", "vectors of no use"),
                ],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
            ),
        ],
        "Pools, caches, context",
    )
