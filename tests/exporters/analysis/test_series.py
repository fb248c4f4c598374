"""Findings as gauges: every cell there, the region's bounds, nothing that is too old."""

from prometheus_client import CollectorRegistry

from exporters.analysis.findings import find
from exporters.analysis.history import Moment
from exporters.analysis.series import AnalysisCollector, State
from slo.analysis import Analysis

SPEC = Analysis(
    every=60, lookback=3600, window=60, kept_ratio=0.95, min_windows=2,
    batch_requests=(0, 4, 8), requests_per_second=(0, 2), prompt_tokens=(0, 512),
    cache_hit_ratio=(0, 0.5), latency_seconds=(0, 1),
)  # fmt: skip
WHO = {"service": "llm", "model": "m"}
MOMENTS = [
    *[Moment(5.0, 1.0, True, 100.0, 0.7, 0.5)] * 3,
    *[Moment(9.0, 3.0, True, 600.0, None, 1.5)] * 2,
    *[Moment(5.0, 3.0, True, None, None, None)] * 2,
    Moment(1.0, 1.0, False, 100.0, 0.1, 0.5),
]


def registry(state: State, now: float = 0.0) -> CollectorRegistry:
    """A registry with the collector alone; results are believed for 300 s."""
    found = CollectorRegistry()
    found.register(AnalysisCollector(state, 300, lambda: now))
    return found


def value(found: CollectorRegistry, name: str, **more: str) -> float | None:
    """A sample of service llm, model m."""
    return found.get_sample_value(name, {**WHO, **more})


def test_cells_and_region() -> None:
    """Good: (rate 0, batch 4) 3 of 3, (2, 4) 2 of 2, (2, 8) 2 of 2; (0, 0) has one window, and it was broken.

    One region of 7 windows; its lower-left cell is rate 0, batch 4 to 8: the limit is 8. The region spans
    batches from 4 without end and rates from 0 without end.
    """
    found = registry(State({("llm", "m"): find(MOMENTS, SPEC)}, made_at=0.0, duration_seconds=0.1))
    cell = {"grid": "batch_rate", "x": "0", "y": "4"}
    assert value(found, "llm_analysis_windows", **cell) == 3
    assert value(found, "llm_analysis_windows_kept", **cell) == 3
    assert value(found, "llm_analysis_in_region", **cell) == 1
    assert value(found, "llm_analysis_in_region", grid="batch_rate", x="0", y="0") == 0
    assert value(found, "llm_analysis_windows_kept", grid="batch_rate", x="0", y="0") == 0
    assert value(found, "llm_analysis_windows", grid="batch_rate", x="2", y="0") == 0
    assert value(found, "llm_analysis_region_windows") == 7
    assert value(found, "llm_analysis_batch_limit_requests") == 8
    assert value(found, "llm_analysis_region_batch_requests", edge="lower") == 4
    assert value(found, "llm_analysis_region_batch_requests", edge="upper") == float("inf")
    assert value(found, "llm_analysis_region_requests_per_second", edge="lower") == 0


def test_a_window_without_a_value_is_left_out_of_that_grid_alone() -> None:
    """Prompt and hit ratio are known in 4 of 8 windows, prompt and latency in 6."""
    found = registry(State({("llm", "m"): find(MOMENTS, SPEC)}, made_at=0.0, duration_seconds=0.1))

    def total(grid: str) -> float:
        return sum(
            s.value
            for family in found.collect()
            for s in family.samples
            if s.name == "llm_analysis_windows" and s.labels["grid"] == grid
        )

    assert (total("batch_rate"), total("length_hit"), total("length_latency")) == (8, 4, 6)


def test_no_good_cell_is_no_limit() -> None:
    """A region of 0 windows, and no limit to set: absent, not 0."""
    found = registry(State({("llm", "m"): find(MOMENTS[-1:], SPEC)}, made_at=0.0, duration_seconds=0.1))
    assert value(found, "llm_analysis_region_windows") == 0
    assert value(found, "llm_analysis_batch_limit_requests") is None


def test_old_findings_are_not_exposed() -> None:
    """After 300 s nobody should act on them; when they were made is still told."""
    state = State({("llm", "m"): find(MOMENTS, SPEC)}, made_at=0.0, duration_seconds=0.1, errors=4)
    assert value(registry(state, now=300), "llm_analysis_region_windows") == 7
    late = registry(state, now=301)
    assert value(late, "llm_analysis_region_windows") is None
    assert late.get_sample_value("llm_analysis_last_success_timestamp_seconds") == 0
    assert late.get_sample_value("llm_analysis_errors_total") == 4


def test_before_the_first_reading_only_errors_are_known() -> None:
    """No grid of zeros."""
    names = {s.name for family in registry(State(errors=1)).collect() for s in family.samples}
    assert names == {"llm_analysis_errors_total"}
