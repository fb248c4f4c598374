"""What a RAG service and its spans publish, and the records of stages, pools, caches and embedding versions."""

from typing import Final

# Stages of a RAG request, in the order in which they run, and those of any traced request.
STAGE_EMBEDDING: Final = "embedding"
STAGE_RETRIEVAL: Final = "retrieval"
STAGE_RERANK: Final = "rerank"
STAGE_ASSEMBLE: Final = "assemble"
STAGE_GENERATE: Final = "generate"
STAGES: Final = (STAGE_EMBEDDING, STAGE_RETRIEVAL, STAGE_RERANK, STAGE_ASSEMBLE, STAGE_GENERATE)
REQUEST_STAGES: Final = ("receive", "tokenize", "schedule", "execute", "detokenize", "respond")
STAGE_REQUEST: Final = "request"
"""In records: the whole request, as its SERVER span measured it."""

# Labels of the service's own metrics. All values are bounded by the lists below.
LABEL_STAGE: Final = "stage"
LABEL_POOL: Final = "pool"
LABEL_STATE: Final = "state"
LABEL_LEVEL: Final = "level"
LABEL_RESULT: Final = "result"
LABEL_OUTCOME: Final = "outcome"
LABEL_WHERE: Final = "where"
LABEL_QUERY_CLASS: Final = "query_class"
LABEL_CONTEXT_CLASS: Final = "context_class"
LABEL_LENGTH_CLASS: Final = "length_class"
LABEL_VERSION: Final = "version"
LABEL_REASON: Final = "reason"

OUTCOMES: Final = ("ok", "error", "rejected", "abandoned")
"""rejected: the request was wrong (4xx); abandoned: the client went away; error: all that is the service's doing."""
POOL_STAGES: Final = {"embedding": STAGE_EMBEDDING, "index": STAGE_RETRIEVAL, "engine": STAGE_GENERATE}
"""Pool -> the stage that takes connections from it; a pool of another name stands for the stage of its name."""
POOL_STATES: Final = ("active", "idle")
CACHE_LEVELS: Final = ("l1", "l2")
CACHE_RESULTS: Final = ("hit", "miss", "negative")
TRUNCATIONS: Final = ("head", "tail", "middle")
LENGTH_BOUNDS_TOKENS: Final = (0, 256, 512, 1024, 2048, 4096, 8192)
"""Lower bounds of the length classes; the last one is open."""
LENGTH_CLASSES: Final = ("0-255", "256-511", "512-1023", "1024-2047", "2048-4095", "4096-8191", "8192+")
"""Values of context_class and length_class: prompt tokens, in the order of LENGTH_BOUNDS_TOKENS."""

# The service's own metrics.
REQUESTS: Final = "rag_requests_total"  # outcome: ok, error, rejected (its own fault)
REQUEST_DURATION: Final = "rag_request_duration_seconds"  # from a request's first byte to its answer's last
STAGE_ERRORS: Final = "rag_stage_errors_total"  # stage: stages that failed
POOL_WAIT: Final = "rag_pool_wait_seconds"  # pool: how long its callers waited for a connection
POOL_CONNECTIONS: Final = "rag_pool_connections"  # pool, state: active or idle
POOL_SIZE: Final = "rag_pool_size"  # pool: connections it may have
POOL_RESETS: Final = "rag_pool_keepalive_resets_total"  # pool: kept connections that were found dead
CACHE_LOOKUPS: Final = "rag_cache_lookups_total"  # level, result: hit, miss, or negative for a known absence
CONTEXTS: Final = "rag_contexts_total"  # contexts that were assembled
CONTEXTS_TRUNCATED: Final = (
    "rag_contexts_truncated_total"  # where: head, tail, middle; contexts that were cut to fit
)
CONTEXT_TOKENS: Final = "rag_context_tokens"  # tokens of a context before truncation
CONTEXT_KEPT_TOKENS: Final = "rag_context_kept_tokens"  # and after it
RETRIEVAL_SECONDS: Final = "rag_retrieval_seconds"  # query_class: search in the index
GENERATION_CLIENT_SECONDS: Final = (
    "rag_generation_client_seconds"  # context_class: the engine's whole answer, client-seen
)
GENERATION_FIRST_TOKEN: Final = "rag_generation_first_token_seconds"  # the engine's first token, client-seen
GENERATION_CACHED_TOKENS: Final = (
    "rag_generation_cached_tokens_total"  # length_class: prompt tokens that the engine had cached
)
GENERATION_PROMPT_TOKENS: Final = (
    "rag_generation_prompt_tokens_total"  # length_class: of answers that state their cached tokens
)
VERSION_INFO: Final = "rag_embedding_version_info"  # version, dimension; 1 for each version in use
VECTORS_REJECTED: Final = "rag_vectors_rejected_total"  # reason: zero, nan, inf, empty, dimension
BROKEN_TRACEPARENTS: Final = "rag_broken_traceparents_total"  # reason; each began a trace of its own

BOUNDS_SECONDS: Final = (
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75,
    1.0, 1.5, 2.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
"""Bucket bounds of every RAG and span latency: the collector's and the service's histograms; each threshold of
slo.yaml (objectives of request and first token, rag.stages) is one of them, which the spec checks."""
BOUNDS_TOKENS: Final = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)

# Metrics that the collector makes of spans.
SPAN_DURATION: Final = (
    "traces_span_metrics_duration_seconds"  # every span, before sampling; labels of the allow-list
)
SPAN_CALLS: Final = "traces_span_metrics_calls_total"  # the same labels
LABEL_SPAN_SERVICE: Final = "service_name"
LABEL_SPAN_KIND: Final = "span_kind"
LABEL_SPAN_STATUS: Final = "status_code"
LABEL_SPAN_STAGE: Final = "rag_stage"
LABEL_SPAN_MODEL: Final = "gen_ai_request_model"
LABEL_SPAN_VERSION: Final = "rag_embedding_version"
KIND_SERVER: Final = "SPAN_KIND_SERVER"
STATUS_ERROR: Final = "STATUS_CODE_ERROR"
ENGINE_STAGE: Final = "llm_span_stage_seconds"  # stage, model: from vLLM's llm_request spans
ENGINE_STAGES: Final = ("queue", "prefill", "decode", "ttft", "e2e")
ENGINE_STAGES_IN_TURN: Final = ("queue", "prefill", "decode")

JOB_RAG: Final = "rag"
"""The RAG service's /metrics; its target carries service."""
JOB_COLLECTOR: Final = "otel-collector"
"""The collector's own metrics."""
JOB_SPANS: Final = "otel-collector-spans"
"""Metrics made of spans, as OpenMetrics with exemplars; honor_labels."""
