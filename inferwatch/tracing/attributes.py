"""Names of span attributes: OpenTelemetry's where it has one, OpenInference's kind, else `rag.` and `inferwatch.`."""

from typing import Final

# OpenTelemetry semantic conventions, GenAI (status: development) and core.
OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
FIRST_CHUNK_SECONDS: Final = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
DATA_SOURCE: Final = "gen_ai.data_source.id"
DIMENSIONS: Final = "gen_ai.embeddings.dimension.count"
ERROR_TYPE: Final = "error.type"
STATUS_CODE: Final = "http.response.status_code"

# OpenInference.
KIND: Final = "openinference.span.kind"

# Of a RAG pipeline.
STAGE: Final = "rag.stage"
TOP_K: Final = "rag.top_k"
HYBRID: Final = "rag.hybrid_search"
QUERY_CLASS: Final = "rag.query_class"
DOCUMENTS: Final = "rag.documents"
TOKENS_BEFORE: Final = "rag.context.tokens_before"
TOKENS_AFTER: Final = "rag.context.tokens_after"
TRUNCATED: Final = "rag.context.truncated"
CACHE_LEVEL: Final = "rag.cache.level"
EMBEDDING_VERSION: Final = "rag.embedding.version"
POOL_WAIT_SECONDS: Final = "rag.pool.wait_seconds"

# What no convention names yet.
ABANDONED: Final = "inferwatch.abandoned"
"""The caller went away before the end; token counts are absent then, not 0."""
BROKEN_TRACEPARENT: Final = "inferwatch.traceparent.broken"
CHUNKS: Final = "inferwatch.stream.chunks"
CHUNK_GAP_MAX_SECONDS: Final = "inferwatch.stream.chunk_gap_max_seconds"
SECONDS_PER_OUTPUT_TOKEN: Final = "inferwatch.stream.seconds_per_output_token"
"""(last chunk - first chunk) / (output tokens - 1); absent for one token or one chunk."""
