"""Windows of one service and model -> its three grids and the region that keeps the promises."""

from collections.abc import Sequence
from dataclasses import dataclass

from exporters.analysis.grids import Grid, Mark, Region, best_region, fill
from exporters.analysis.history import Moment
from slo.analysis import Analysis
from slo.names import analysis as names


@dataclass(frozen=True)
class Findings:
    """Grids by id, and the best region of the batch × rate grid (None: no cell is good)."""

    grids: dict[str, Grid]
    region: Region | None


def find(moments: Sequence[Moment], spec: Analysis) -> Findings:
    """Sort *moments* into the grids of *spec*; a moment that lacks a value is left out of that grid alone."""
    batch_rate = fill(
        (Mark(m.requests_per_second, m.batch_requests, m.kept) for m in moments),
        spec.requests_per_second,
        spec.batch_requests,
    )
    length_hit = fill(
        (
            Mark(m.cache_hit_ratio, m.prompt_tokens, m.kept)
            for m in moments
            if m.cache_hit_ratio is not None and m.prompt_tokens is not None
        ),
        spec.cache_hit_ratio,
        spec.prompt_tokens,
    )
    length_latency = fill(
        (
            Mark(m.prompt_tokens, m.latency_seconds, m.kept)
            for m in moments
            if m.prompt_tokens is not None and m.latency_seconds is not None
        ),
        spec.prompt_tokens,
        spec.latency_seconds,
    )
    return Findings(
        {
            names.GRID_BATCH_RATE: batch_rate,
            names.GRID_LENGTH_HIT: length_hit,
            names.GRID_LENGTH_LATENCY: length_latency,
        },
        best_region(batch_rate, spec.kept_ratio, spec.min_windows),
    )


def upper(bounds: Sequence[float], place: int) -> float:
    """The upper bound of a bin; the last bin has none, which is +Inf."""
    return bounds[place + 1] if place + 1 < len(bounds) else float("inf")
