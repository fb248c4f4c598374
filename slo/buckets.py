"""The bucket bounds an engine's latency histograms have; a threshold must be one of them.

Source: vLLM `v1/metrics/buckets.py`, unchanged from 0.8.5 to 0.33.0 and seen in recordings of
0.26.0 and 0.32.0. A threshold between two bounds could only be judged by interpolation.
"""

_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20)
_LONG_FIRST_TOKEN = (*_FIRST_TOKEN, 40, 80, 160, 640, 2560)
_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_REQUEST = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)

LATENCY_BOUNDS_SECONDS: dict[str, tuple[float, ...]] = {
    "time_to_first_token": _LONG_FIRST_TOKEN,
    "inter_token_latency": _TOKEN,
    "time_per_output_token": _TOKEN,
    "request_duration": _REQUEST,
    "request_queue": _REQUEST,
    "request_prefill": _REQUEST,
    "request_decode": _REQUEST,
}
"""SLI name in slo.yaml -> bounds in seconds."""


def neighbours(sli: str, threshold_seconds: float) -> tuple[float | None, float | None]:
    """Return the bounds just under and just over a threshold that is not a bound itself."""
    bounds = LATENCY_BOUNDS_SECONDS[sli]
    below = [b for b in bounds if b < threshold_seconds]
    above = [b for b in bounds if b > threshold_seconds]
    return (below[-1] if below else None, above[0] if above else None)
