"""The RAG service's own metrics and the engine's spans -> pools, caches, context, KV hits, time on the way."""

from alerts.promql import le_matcher, promql, window
from alerts.rag_records import renamed, step
from alerts.rule import Record
from slo.names import rag as names
from slo.names import rag_records as records
from slo.spec import Spec

POOL = "(service, pool, stage)"


def _sum(metric: str, over: str, by: str, function: str = "increase") -> str:
    return f"sum by ({by}) ({function}({metric}{over}))"


def _by_pool(expression: str) -> str:
    """With the stage that the pool is for, so that one incident of both is told once."""
    expression = renamed(expression, (names.LABEL_POOL, names.LABEL_STAGE))
    for pool, stage in names.POOL_STAGES.items():
        if pool != stage:
            expression = f'label_replace({expression}, "stage", "{stage}", "pool", "{pool}")'
    return f"max by {POOL} ({expression})"


def service_records(spec: Spec) -> tuple[Record, ...]:
    """Return what the service says of itself, in the order of evaluation."""
    return (
        Record(
            records.REQUESTS,
            _sum(names.REQUESTS, window(spec.rag.window), "service, outcome", "rate"),
        ),
        *_pool_records(spec),
        *_cache_records(spec),
        *_context_records(spec),
    )


def _pool_records(spec: Spec) -> tuple[Record, ...]:
    rag, over = spec.rag, window(spec.rag.window)
    waits = f"sum by (service, pool, le) (rate({names.POOL_WAIT}_bucket{over}))"
    taken = _sum(names.POOL_WAIT + "_count", over, "service, pool")
    enough = f"{taken} >= {rag.pool.min_acquisitions:g}"
    active = f'{names.POOL_CONNECTIONS}{{{names.LABEL_STATE}="active"}}'
    return (
        *(
            Record(
                records.POOL_WAIT,
                _by_pool(f"histogram_quantile({q:g}, {waits})\nand on (service, pool) ({enough})"),
                {"quantile": f"{q:g}"},
            )
            for q in rag.quantiles
        ),
        Record(
            records.POOL_USE,
            _by_pool(
                f"{_sum(active, over, 'service, pool', 'avg_over_time')}\n"
                f"/ ({_sum(names.POOL_SIZE, over, 'service, pool', 'avg_over_time')} > 0)"
            ),
        ),
        Record(
            records.POOL_RESETS,
            _by_pool(f"{_sum(names.POOL_RESETS, over, 'service, pool')}\n/ ({taken} > 0)"),
        ),
    )


def _cache_records(spec: Spec) -> tuple[Record, ...]:
    cache, over = spec.rag.cache, window(spec.rag.window)
    every = _sum(names.CACHE_LOOKUPS, over, "service, level")
    answered = _sum(f'{names.CACHE_LOOKUPS}{{{names.LABEL_RESULT}!="miss"}}', over, "service, level")
    past = f"{records.CACHE_HIT}{window(cache.lookback)} offset {spec.rag.window}s"
    fewest = cache.min_history / spec.intervals.slow_evaluation_seconds
    return (
        Record(
            records.CACHE_HIT,
            promql(f"({answered}\nor {every} * 0)\n/ ({every} >= {cache.min_lookups:g})"),
        ),
        Record(
            records.CACHE_USUAL,
            f"quantile_over_time(0.5, {past})\nand {fewest:g} <= count_over_time({past})",
        ),
    )


def _context_records(spec: Spec) -> tuple[Record, ...]:
    cut, over = spec.rag.truncation, window(spec.rag.window)
    wide = window(cut.window)
    every = _sum(names.CONTEXTS, wide, "service")
    prompt = _sum(names.GENERATION_PROMPT_TOKENS, over, "service, length_class")
    cached = _sum(names.GENERATION_CACHED_TOKENS, over, "service, length_class")
    return (
        Record(
            records.TRUNCATED,
            promql(
                f"({_sum(names.CONTEXTS_TRUNCATED, wide, 'service')}\nor {every} * 0)\n"
                f"/ ({every} >= {cut.min_contexts:g})"
            ),
        ),
        Record(records.KV_HIT, f"{cached}\n/ ({prompt} > 0)"),
        *_context_latency(spec),
    )


def _context_latency(spec: Spec) -> tuple[Record, ...]:
    """One rule a band; each class of lengths adds up to 1 over its bands."""
    over = window(spec.rag.window)
    bounds = spec.rag.latency_bands_seconds

    def within(bound: float | None) -> str:
        matcher = le_matcher(bound) if bound is not None else 'le="+Inf"'
        return f"sum by (service, context_class) (rate({names.GENERATION_CLIENT_SECONDS}_bucket{{{matcher}}}{over}))"

    found = []
    for low, high in zip([None, *bounds], [*bounds, None], strict=True):
        part = within(high) if low is None else f"({within(high)}\n- {within(low)})"
        found.append(
            Record(
                records.CONTEXT_LATENCY,
                promql(f"{part}\n/ ({within(None)} > 0)"),
                {records.LABEL_SECONDS: f"{low or 0:g}"},
            )
        )
    return tuple(found)


def engine_records(spec: Spec) -> tuple[Record, ...]:
    """Return what vLLM's own spans say of its stages, and what lies between it and its callers."""
    over = window(spec.rag.window)
    every = f'sum_over_time({records.ENGINE_BUCKET}{{le="+Inf"}}{over}) > 0'
    return (
        Record(
            records.ENGINE_BUCKET,
            f"sum by (model, stage, le) (rate({names.ENGINE_STAGE}_bucket{step(spec)}))",
        ),
        *(
            Record(
                records.ENGINE_SECONDS,
                f"histogram_quantile({q:g}, sum_over_time({records.ENGINE_BUCKET}{over})\n"
                f"and on (model, stage) ({every}))",
                {"quantile": f"{q:g}"},
            )
            for q in spec.rag.quantiles
        ),
        *_network(spec),
    )


def _network(spec: Spec) -> tuple[Record, Record]:
    """Mean less mean: over the same requests that is the mean of the differences. Quantiles would not subtract."""
    over = window(spec.rag.window)
    ok = (
        f'{names.LABEL_SPAN_STAGE}="{names.STAGE_GENERATE}",{names.LABEL_SPAN_STATUS}!="{names.STATUS_ERROR}"'
    )

    def client(part: str) -> str:
        rates = f"sum by ({names.LABEL_SPAN_MODEL}) (rate({names.SPAN_DURATION}_{part}{{{ok}}}{over}))"
        return f"sum by (model) ({renamed(rates, (names.LABEL_SPAN_MODEL, 'model'))})"

    def engine(part: str, stage: str, by: str = "by (model) ") -> str:
        return f'sum {by}(rate({names.ENGINE_STAGE}_{part}{{{names.LABEL_STAGE}="{stage}"}}{over}))'

    def first(part: str) -> str:
        return f"sum(rate({names.GENERATION_FIRST_TOKEN}_{part}{over}))"

    return (
        _less(
            spec,
            client("sum"),
            client("count"),
            engine("sum", "e2e"),
            engine("count", "e2e"),
            records.MEASURE_REQUEST,
        ),
        _less(
            spec,
            first("sum"),
            first("count"),
            engine("sum", "ttft", ""),
            engine("count", "ttft", ""),
            records.MEASURE_FIRST_TOKEN,
        ),
    )


def _less(spec: Spec, ours: str, our_count: str, theirs: str, their_count: str, measure: str) -> Record:
    most = spec.rag.network.max_count_difference_ratio
    fewest = spec.rag.min_requests / spec.rag.window
    return Record(
        records.NETWORK,
        promql(f"""
            {ours} / ({our_count} >= {fewest:.10g})
            - {theirs} / ({their_count} > 0)
            and abs({their_count} / {our_count} - 1) <= {most:g}
        """),
        {records.LABEL_MEASURE: measure},
    )
