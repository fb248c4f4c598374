"""Every metric name, label and failure reason that the engine exporter publishes, stated once.

Rules, dashboards and load tests import these constants; nobody types the strings elsewhere.
Counters and histograms are cumulative as the engine counts them: use rate() or increase().
"""

from typing import Final

# Labels. `model` is on every sample of an engine unless the model cannot be told; `dp_rank` is on every
# sample that belongs to one engine core (families of the HTTP server as a whole carry no rank).
LABEL_MODEL: Final = "model"
LABEL_DP_RANK: Final = "dp_rank"
LABEL_FINISH_REASON: Final = "finish_reason"
LABEL_HANDLER: Final = "handler"
LABEL_CODE: Final = "code"
LABEL_SOURCE: Final = "source"
LABEL_REASON: Final = "reason"
LABEL_ENGINE: Final = "engine"
LABEL_VERSION: Final = "version"
LABEL_SIMULATED: Final = "simulated"
LABEL_ADAPTER: Final = "adapter"
LABEL_STATE: Final = "state"

# Latency, histograms in seconds. Labels: model, dp_rank.
TIME_TO_FIRST_TOKEN_SECONDS: Final = "llm_time_to_first_token_seconds"
INTER_TOKEN_LATENCY_SECONDS: Final = "llm_inter_token_latency_seconds"
TIME_PER_OUTPUT_TOKEN_SECONDS: Final = "llm_time_per_output_token_seconds"
REQUEST_DURATION_SECONDS: Final = "llm_request_duration_seconds"
REQUEST_QUEUE_SECONDS: Final = "llm_request_queue_seconds"
REQUEST_PREFILL_SECONDS: Final = "llm_request_prefill_seconds"
REQUEST_DECODE_SECONDS: Final = "llm_request_decode_seconds"

# Sizes, histograms in tokens. Labels: model, dp_rank.
ITERATION_TOKENS: Final = "llm_iteration_tokens"
REQUEST_PROMPT_TOKENS: Final = "llm_request_prompt_tokens"
REQUEST_GENERATION_TOKENS: Final = "llm_request_generation_tokens"

# Requests, counters.
REQUESTS_TOTAL: Final = "llm_requests_total"  # model, dp_rank, finish_reason; finished requests
HTTP_REQUESTS_TOTAL: Final = "llm_http_requests_total"  # model, handler, code ("2xx"); no rank
ADMISSION_REJECTIONS_TOTAL: Final = "llm_admission_rejections_total"  # model, reason; no rank
PREEMPTIONS_TOTAL: Final = "llm_preemptions_total"  # model, dp_rank

# Tokens, counters. Labels: model, dp_rank (and source).
PROMPT_TOKENS_TOTAL: Final = "llm_prompt_tokens_total"
GENERATION_TOKENS_TOTAL: Final = "llm_generation_tokens_total"
PROMPT_TOKENS_CACHED_TOTAL: Final = "llm_prompt_tokens_cached_total"
PREFIX_CACHE_QUERIED_TOKENS_TOTAL: Final = "llm_prefix_cache_queried_tokens_total"
PREFIX_CACHE_HIT_TOKENS_TOTAL: Final = "llm_prefix_cache_hit_tokens_total"

# State, gauges. Labels: model, dp_rank.
REQUESTS_RUNNING: Final = "llm_requests_running"
REQUESTS_WAITING: Final = "llm_requests_waiting"
KV_CACHE_USAGE_RATIO: Final = "llm_kv_cache_usage_ratio"
KV_CACHE_CAPACITY_TOKENS: Final = "llm_kv_cache_capacity_tokens"
ENGINE_SLEEPING: Final = "llm_engine_sleeping"
# 1 for each (model, dp_rank) whose metrics were read; absent, never 0, when they were not.
ENGINE_UP: Final = "llm_engine_up"
ENGINE_INFO: Final = "llm_engine_info"  # model, engine, version, simulated ("true" or "false"); 1

# LoRA, gauges, present only where LoRA is configured. Label: model.
LORA_ADAPTERS_RUNNING: Final = "llm_lora_adapters_running"
LORA_ADAPTERS_WAITING: Final = "llm_lora_adapters_waiting"
LORA_ADAPTERS_LIMIT: Final = "llm_lora_adapters_limit"
LORA_ADAPTER_INFO: Final = "llm_lora_adapter_info"  # model, adapter, state ("running" or "waiting"); 1

# The probe itself, gauges, in every answer of /probe whatever happened.
PROBE_SUCCESS: Final = "llm_probe_success"
PROBE_FAILURE: Final = "llm_probe_failure"  # reason; 0 or 1, one series for each of PROBE_REASONS
PROBE_DURATION_SECONDS: Final = "llm_probe_duration_seconds"
PROBE_BODY_BYTES: Final = "llm_probe_body_bytes"
PROBE_SERIES: Final = "llm_probe_series"
PROBE_PARSE_ERRORS: Final = "llm_probe_parse_errors"
PROBE_HTTP_STATUS: Final = "llm_probe_http_status_code"  # absent when no HTTP answer came

# Why a probe failed (label `reason` of PROBE_FAILURE).
REASON_CREDENTIALS: Final = "credentials"  # the module's token, CA or key file cannot be read
REASON_DNS: Final = "dns"  # the target's name does not resolve
REASON_REFUSED: Final = "refused"  # nothing listens there
REASON_UNREACHABLE: Final = "unreachable"  # no route, or the connection broke before an answer
REASON_TLS: Final = "tls"  # handshake or certificate
REASON_TIMEOUT: Final = "timeout"  # no whole answer within the time allowed
REASON_HTTP: Final = "http"  # a status other than 200 (redirects included), or not HTTP at all
REASON_TOO_LARGE: Final = "too_large"  # more bytes or series than the module allows
REASON_MALFORMED: Final = "malformed"  # cut off, contradictory or unreadable
REASON_NO_ENGINE_METRICS: Final = "no_engine_metrics"  # a 200 without one sample of a known engine
PROBE_REASONS: Final = (
    REASON_CREDENTIALS,
    REASON_DNS,
    REASON_REFUSED,
    REASON_UNREACHABLE,
    REASON_TLS,
    REASON_TIMEOUT,
    REASON_HTTP,
    REASON_TOO_LARGE,
    REASON_MALFORMED,
    REASON_NO_ENGINE_METRICS,
)

# The exporter's own /metrics, beside process_* and python_*.
EXPORTER_PROBES_TOTAL: Final = "inferwatch_engine_exporter_probes_total"  # result: "success" or a reason
EXPORTER_REFUSED_TOTAL: Final = "inferwatch_engine_exporter_requests_refused_total"  # answered HTTP 400
EXPORTER_TRANSLATE_SECONDS: Final = "inferwatch_engine_exporter_translate_seconds"
EXPORTER_CACHE_ENTRIES: Final = "inferwatch_engine_exporter_label_cache_entries"
EXPORTER_CACHE_BYTES: Final = "inferwatch_engine_exporter_label_cache_bytes"
LABEL_RESULT: Final = "result"
