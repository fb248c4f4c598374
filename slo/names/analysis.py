"""What the analysis exporter publishes: grids over recorded windows, and the region that keeps the promises."""

from typing import Final

# Labels of a grid: its id, and the lower bounds of the cell's bins. Every cell of a grid is always there.
LABEL_GRID: Final = "grid"
LABEL_X: Final = "x"
LABEL_Y: Final = "y"
LABEL_EDGE: Final = "edge"

GRID_BATCH_RATE: Final = "batch_rate"  # x: request rate per engine, y: running requests per engine
GRID_LENGTH_HIT: Final = "length_hit"  # x: prefix-cache hit ratio, y: mean prompt length
GRID_LENGTH_LATENCY: Final = "length_latency"  # x: mean prompt length, y: P95 of the whole request

WINDOWS: Final = "llm_analysis_windows"  # service, model, grid, x, y; gauge over the lookback
WINDOWS_KEPT: Final = "llm_analysis_windows_kept"  # same labels: windows that kept every promise
IN_REGION: Final = "llm_analysis_in_region"  # same labels, batch_rate only; 0 or 1
REGION_WINDOWS: Final = "llm_analysis_region_windows"  # service, model; 0: no cell is good
BATCH_LIMIT: Final = "llm_analysis_batch_limit_requests"  # service, model; absent without a region
REGION_BATCH: Final = "llm_analysis_region_batch_requests"  # + edge: lower or upper
REGION_RATE: Final = "llm_analysis_region_requests_per_second"  # + edge: lower or upper
EDGE_LOWER: Final = "lower"
EDGE_UPPER: Final = "upper"

LAST_SUCCESS: Final = "llm_analysis_last_success_timestamp_seconds"
ERRORS: Final = "llm_analysis_errors_total"
DURATION: Final = "llm_analysis_duration_seconds"

# Embedding versions held against each other by the judged quantile: service, stage, version.
LABEL_VERSION: Final = "version"
LABEL_THAN: Final = "than"
LABEL_BOUND: Final = "bound"
BOUND_ESTIMATE: Final = "estimate"
BOUND_LOWER: Final = "lower"
BOUND_UPPER: Final = "upper"
VERSION_REQUESTS: Final = "llm_analysis_version_requests"  # within rag.versions.lookback
VERSION_IN_USE: Final = "llm_analysis_version_in_use"  # 1: it had requests within rag.window
VERSION_LATENCY: Final = "llm_analysis_version_latency_seconds"  # + bound; absent under min_requests
VERSION_DIFFERENCE: Final = (
    "llm_analysis_version_difference_seconds"  # + than, bound; its own less the other's
)
