"""Series that the recording rules write, with the labels they carry (service is always there)."""

# One engine instance: service, instance, model. Every evaluation.
INSTANCE_MODELS = "inferwatch:instance_models:info"
"""1 for each model that an instance serves now."""
INSTANCE_MODEL = "inferwatch:instance_model:info"
"""1; the model is remembered while the instance does not answer."""
INSTANCE_DOWN = "inferwatch:instance_down:bool"
"""1 while probes do not reach the engine; timeouts count once they fill the base window. Without the exporter: as last
known, while the target is in service discovery."""
RANK_STUCK_REQUESTS = "inferwatch:rank_stuck_requests:sum"
"""Requests in a data-parallel rank (dp_rank) that makes no step; 0 while it works or is idle."""
INSTANCE_STUCK_REQUESTS = "inferwatch:instance_stuck_requests:sum"
"""Requests in an engine that makes no step; there is no sample while it works."""
INSTANCE_REQUESTS = "inferwatch:instance_requests:rate"
"""Answered requests per second (2xx and 5xx, canary left out)."""
INSTANCE_FAILURES = "inferwatch:instance_failures:rate"
"""Failed requests per second, each once: max of 5xx answers and failures the engine reports."""
INSTANCE_INCONSISTENT = "inferwatch:instance_inconsistent:resets"
"""Counter resets in the window; there is a sample only where there are too many to trust rates."""
DIRECT_TARGET = "inferwatch:direct_target:info"
"""1 for each engine that is scraped without our exporter, and by that alone."""
TARGET_SEEN = "inferwatch:target_seen:timestamp"
"""Unix time when the target was last in service discovery."""

# One service and model. Every evaluation.
REQUESTS = "inferwatch:requests:rate"
FAILURES = "inferwatch:failures:rate"
UNSERVED = "inferwatch:unserved:bool"
"""1 while no instance can serve: each is down, or hung in all its ranks."""
UNSERVED_REQUESTS = "inferwatch:unserved_requests:rate"
"""Requests per second that are counted as failed while nothing serves."""
CANARY_REQUESTS = "inferwatch:canary_requests:rate"
FAILING = "inferwatch:failing_requests:ratio"
"""Share of the latest requests that failed (states.failing.window); there is a sample only where enough failed."""

# One SLO of one service and model: sloth_id, sloth_service, sloth_slo.
BAD_EVENTS = "slo:sli_bad_events:rate"
TOTAL_EVENTS = "slo:sli_total_events:rate"
BAD_EVENTS_MINUTE = "slo:sli_bad_events:avg1m"
TOTAL_EVENTS_MINUTE = "slo:sli_total_events:avg1m"
BAD_EVENTS_PERIOD = "slo:sli_bad_events:avg5m"
TOTAL_EVENTS_PERIOD = "slo:sli_total_events:avg5m"
ERROR_RATIO_PREFIX = "slo:sli_error:ratio_rate"
"""Sloth's name; the window follows: slo:sli_error:ratio_rate5m, ..., with sloth_window."""
OBJECTIVE = "slo:objective:ratio"
ERROR_BUDGET = "slo:error_budget:ratio"
PERIOD_DAYS = "slo:time_period:days"
CURRENT_BURN_RATE = "slo:current_burn_rate:ratio"
PERIOD_BURN_RATE = "slo:period_burn_rate:ratio"
BUDGET_REMAINING = "slo:period_error_budget_remaining:ratio"
SLO_INFO = "sloth_slo_info"

# Latency distributions: sli (a key of slo.buckets), model. Every slow evaluation.
LATENCY_BUCKET = "inferwatch:latency_bucket:rate"
"""Observations per second by le, over one slow evaluation; heatmaps read it."""
LATENCY_SUM = "inferwatch:latency_sum:rate"
LATENCY_BOUND_INSTANCES = "inferwatch:latency_bound:instances"
"""How many engines have the bound le; fewer than le="+Inf" means mixed layouts."""
LATENCY_QUANTILE = "inferwatch:latency_seconds:quantile5m"
"""With quantile="0.5|0.95|0.99|0.999"; no sample without traffic."""
LATENCY_MEAN = "inferwatch:latency_seconds:mean5m"
LATENCY_OFF_SCALE = "inferwatch:latency_off_scale:ratio5m"
"""Share of observations over the highest bound that all engines have."""

# Early signals and throughput: model. Every slow evaluation. `signal_statistic` in alerts/signals.py.
WAITING_MEDIAN = "inferwatch:requests_waiting:median"
PREFIX_CACHE_HIT = "inferwatch:prefix_cache_hit:ratio"
KV_CACHE_USAGE = "inferwatch:kv_cache_usage:ratio"
PREEMPTIONS = "inferwatch:preemptions:rate"
ADMISSION_REJECTIONS = "inferwatch:admission_rejections:ratio"
CLIENTS_VANISHED = "inferwatch:clients_vanished:ratio"
GENERATION_TOKENS = "inferwatch:generation_tokens:rate"
PROMPT_TOKENS = "inferwatch:prompt_tokens:rate"


def error_ratio(window: str) -> str:
    """Return the record of the error ratio over a window written like "5m"."""
    return ERROR_RATIO_PREFIX + window
