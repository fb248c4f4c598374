"""What the drift exporter publishes, and the records and alerts of drift and of latency × drift."""

from typing import Final

# Labels. A stream is one model, version and tenant; the service is set by service discovery.
LABEL_VERSION: Final = "version"
LABEL_TENANT: Final = "tenant"
LABEL_STATE: Final = "state"
LABEL_REASON: Final = "reason"
LABEL_DETECTOR: Final = "detector"
LABEL_SOURCE: Final = "source"
LABEL_DRIFT: Final = "drift"
LABEL_BAND: Final = "band"
LABEL_LEVEL: Final = "level"
LABEL_BASELINE: Final = "baseline"
OTHER: Final = "other"  # tenants over the limit

STATES: Final = ("no", "yes", "insufficient", "no_reference", "swapped")
REJECT_REASONS: Final = ("zero", "nan", "inf", "empty", "dimension", "malformed")
DROP_REASONS: Final = ("streams", "memory", "busy", "too_large", "undecodable")
SOURCES: Final = ("post", "tap", "otlp")

# Streams: model, version, tenant.
STATE: Final = "llm_drift_state"  # + state: 1 for the one it is in
SCORE: Final = "llm_drift_score"  # + detector; absent while it cannot be computed
THRESHOLD: Final = "llm_drift_threshold"  # + detector, for the present number of vectors
RATIO: Final = "llm_drift_score_threshold_ratio"  # 1: the worst detector is at its threshold
FALSE_ALARM: Final = "llm_drift_false_alarm_ratio"  # + detector, of healthy windows, measured at the fit
WINDOW_VECTORS: Final = "llm_drift_window_vectors"  # accepted within the window
SAMPLE_VECTORS: Final = "llm_drift_sample_vectors"  # of those, kept
LIKENESS: Final = "llm_drift_space_likeness"  # near 0: not the reference's space
SWAP_INFO: Final = "llm_drift_swap_info"  # + reason: model, version, dimension, space
LAST_EVALUATION: Final = "llm_drift_last_evaluation_timestamp_seconds"  # absent before the first
ACCEPTED: Final = "llm_drift_vectors_accepted_total"  # + source
REJECTED: Final = "llm_drift_vectors_rejected_total"  # source, reason

# The exporter as a whole.
STREAMS: Final = "llm_drift_streams"  # watched now
DROPPED: Final = "llm_drift_dropped_total"  # reason: vectors or answers that were not sampled
MEMORY: Final = "llm_drift_vector_memory_bytes"  # of the vectors that are held
EVALUATION: Final = "llm_drift_evaluation_seconds"  # the last round over all streams
REFERENCE: Final = "llm_drift_reference_info"  # model, version, dimension, vectors
REFERENCE_TIME: Final = "llm_drift_reference_created_timestamp_seconds"  # when the profile was fitted
UNAUTHORISED: Final = "llm_drift_unauthorised_requests_total"  # to the ingest port, without its token
TAP_REQUESTS: Final = "llm_drift_tap_requests_total"  # code
TAP_DURATION: Final = "llm_drift_tap_request_duration_seconds"  # whole embedding answers through the tap

# Retrieval health, sent by the client: tenant.
RETRIEVALS: Final = "llm_retrievals_total"  # + result: ok, low_score, empty
RETRIEVAL_SECONDS: Final = "llm_retrieval_duration_seconds"  # as the client measured it
RETRIEVAL_TOP_SCORE: Final = "llm_retrieval_top_score"  # histogram of the best similarity
RETRIEVAL_MEAN_SCORE: Final = "llm_retrieval_mean_score"  # histogram of the mean over the top k
RETRIEVAL_QUERY_LENGTH: Final = "llm_retrieval_query_characters"  # lengths of queries
LABEL_RESULT: Final = "result"
RESULTS: Final = ("ok", "low_score", "empty")

# Records: service.
SERVICE_DRIFT: Final = "inferwatch:drift:state"
"""1 with drift="no|yes|unknown|swapped": the one state that the service is in."""
LATENCY: Final = "inferwatch:joint_latency:seconds"
"""P95 of sli and model; no sample under min_requests."""
BASELINE: Final = "inferwatch:joint_baseline:seconds"
"""With baseline="day_before|trailing_hour|objective": what LATENCY is held against."""
BAD: Final = "inferwatch:joint_bad:bool"
"""1 while the level of the evaluation before was warn or critical."""
FROZEN: Final = "inferwatch:joint_baseline_frozen:bool"
"""1 while the baseline stands still: BAD, but not for longer than joint.max_freeze."""
NORMAL: Final = "inferwatch:joint_latency_normal:seconds"
"""LATENCY while the baseline is not frozen: what baselines are made of."""
RISE: Final = "inferwatch:joint_latency:ratio"
"""LATENCY over BASELINE: 1.2 is 20 % slower."""
BAND: Final = "inferwatch:joint_band:index"
"""Index of the latency band, with hysteresis: 0 is the first of slo.yaml."""
LEVEL: Final = "inferwatch:joint_level:state"
"""0 ok, 1 info, 2 warn, 3 critical; its labels band, drift and level name the live cell."""
RETRIEVAL_BAD: Final = "inferwatch:retrieval_bad:ratio"
"""Share of empty and low-scored retrievals over the window."""

BASELINE_DAY: Final = "day_before"
BASELINE_HOUR: Final = "trailing_hour"
BASELINE_OBJECTIVE: Final = "objective"
SLI_RETRIEVAL: Final = "retrieval"
