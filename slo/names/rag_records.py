"""Series that the RAG rules write. Every one carries service; stage is one of slo.names.rag, or "request"."""

from typing import Final

# Stages, from span metrics. Every slow evaluation.
STAGE_BUCKET: Final = "inferwatch:rag_stage_bucket:rate"
"""Spans per second by stage and le, over one slow evaluation."""
STAGE_SECONDS: Final = "inferwatch:rag_stage_seconds:quantile5m"
"""With quantile="0.5|0.95|0.99"; no sample without traffic."""
STAGE_REQUESTS: Final = "inferwatch:rag_stage_requests:sum"
"""Spans of the stage within rag.window: what floors are about."""
STAGE_CALLS: Final = "inferwatch:rag_stage_calls:rate"
STAGE_ERRORS: Final = "inferwatch:rag_stage_errors:ratio"
STAGE_TIME: Final = "inferwatch:rag_stage_time:rate"
"""Seconds spent in the stage per second."""
STAGE_SHARE: Final = "inferwatch:rag_stage_share:ratio"
"""Part of the requests' time; stage="other" is what no stage covers."""
CRITICAL_STAGE: Final = "inferwatch:rag_critical_stage:ratio"
"""The one stage that most of the requests' time goes to, and its share."""
OTHER: Final = "other"

# Requests of the service's own counting.
REQUESTS: Final = "inferwatch:rag_requests:rate"

# Pools: pool, stage (that of the same name). Caches: level. Context and generation.
POOL_WAIT: Final = "inferwatch:rag_pool_wait_seconds:quantile5m"
POOL_USE: Final = "inferwatch:rag_pool_use:ratio"
POOL_RESETS: Final = "inferwatch:rag_keepalive_resets:ratio"
"""Connections that were kept and found dead, per acquisition."""
CACHE_HIT: Final = "inferwatch:rag_cache_hit:ratio"
"""Lookups answered by the level, known absences included."""
CACHE_USUAL: Final = "inferwatch:rag_cache_hit_usual:ratio"
"""Median of CACHE_HIT over rag.cache.lookback, the last window left out."""
TRUNCATED: Final = "inferwatch:rag_context_truncated:ratio"
KV_HIT: Final = "inferwatch:rag_kv_hit:ratio"
"""length_class: prompt tokens that the engine found in its KV cache, as the caller's usage says."""
CONTEXT_LATENCY: Final = "inferwatch:rag_context_latency:ratio"
"""context_class, seconds: share of the class's generations in a latency band, named by its lower bound."""
LABEL_SECONDS: Final = "seconds"
RETRIEVAL_BY_CLASS: Final = "inferwatch:rag_retrieval_seconds:quantile5m"
"""query_class, quantile."""
RETRIEVAL_BY_RATE: Final = "inferwatch:rag_retrieval_at_rate_seconds:quantile5m"
"""rate_class: the judged quantile, as the class of the present request rate."""
LABEL_RATE_CLASS: Final = "rate_class"

# Versions of the embedding model: version, stage.
VERSION_BUCKET: Final = "inferwatch:rag_version_bucket:rate"

# The engine, as its own spans measured it: model, stage (queue, prefill, decode, ttft, e2e). No service.
ENGINE_BUCKET: Final = "inferwatch:engine_span_bucket:rate"
ENGINE_SECONDS: Final = "inferwatch:engine_span_seconds:quantile5m"
NETWORK: Final = "inferwatch:network_seconds:mean5m"
"""Client-seen less server-seen seconds: measure="request" by model, measure="first_token" over all models."""
LABEL_MEASURE: Final = "measure"
MEASURE_REQUEST: Final = "request"
MEASURE_FIRST_TOKEN: Final = "first_token"
