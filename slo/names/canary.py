"""What the canary publishes: one real request at a time, seen as a client sees it."""

REQUESTS = "llm_canary_requests_total"
REQUEST_DURATION = "llm_canary_request_duration_seconds"
TIME_TO_FIRST_TOKEN = "llm_canary_time_to_first_token_seconds"
LAST_SUCCESS = "llm_canary_last_success_timestamp_seconds"
LAST_ATTEMPT = "llm_canary_last_attempt_timestamp_seconds"
SUCCESS = "llm_canary_success"
IN_FLIGHT = "llm_canary_in_flight"
BACKOFF = "llm_canary_backoff_seconds"

TARGETS = "llm_canary_targets"
TARGETS_FILE_ERRORS = "llm_canary_targets_file_errors_total"
TARGETS_FILE_VALID = "llm_canary_targets_file_valid"
