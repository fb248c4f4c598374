"""Names of the live series of a load run, as the load client measures it."""

from typing import Final

RUN_INFO: Final = "llm_load_run_info"
RUN_START: Final = "llm_load_run_start_timestamp_seconds"
REQUESTS: Final = "llm_load_requests_total"
ERRORS: Final = "llm_load_errors_total"
RETRIES: Final = "llm_load_retries_total"
OUTPUT_TOKENS: Final = "llm_load_output_tokens_total"
LATENCY: Final = "llm_load_latency_seconds"  # labels: measure, quantile; over the last window
SCHEDULE_DELAY: Final = "llm_load_schedule_delay_seconds"  # label: quantile
ERROR_RATIO: Final = "llm_load_error_ratio"
TARGET_RATE: Final = "llm_load_target_requests_per_second"
SENT_RATE: Final = "llm_load_sent_requests_per_second"
IN_FLIGHT: Final = "llm_load_requests_in_flight"
CLIENT_CPU: Final = "llm_load_client_cpu_ratio"
CLIENT_LAG: Final = "llm_load_client_event_loop_lag_seconds"
