"""What the way of the traces publishes beside the metrics of spans (slo/names/rag.py): collector and watcher."""

from typing import Final

SPAN_MISSING: Final = "llm_span_missing_total"
"""field; what spans of an engine did not say and no caller filled in."""
SPAN_INVALID_TIME: Final = "llm_span_invalid_time_total"
"""Spans that ended before they began."""
SPAN_TOKENS: Final = "gen_ai_span_tokens_total"
"""type, gen_ai_provider_name, span_kind; tokens by the usage that spans report."""
LOG_ERRORS: Final = "llm_log_errors_total"
"""service_name; log records of ERROR and worse."""

FIRING_MODELS: Final = "inferwatch_firing_models"
"""Models whose traces are all kept, because an alert of theirs fires."""
SAMPLER_RELOADS: Final = "inferwatch_sampler_reloads_total"
FIRING_FAILURES: Final = "inferwatch_firing_failures_total"
"""Looks at Prometheus, or signals to the sampler, that failed."""

JOB_FIRING: Final = "firing-models"
"""The watcher's own /metrics."""
