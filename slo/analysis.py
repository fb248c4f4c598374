"""The bins and limits with which recorded windows are sorted into grids."""

from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator, Field

from slo.base import OpenRatio, PositiveSeconds, Strict


def _ascending(bounds: tuple[float, ...]) -> tuple[float, ...]:
    if bounds[0] != 0:
        raise ValueError(f"the first bin must begin at 0, not {bounds[0]:g}; put 0 in front")
    for low, high in pairwise(bounds):
        if high <= low:
            raise ValueError(f"{high:g} follows {low:g}; bin bounds must rise")
    return bounds


Bins = Annotated[tuple[float, ...], Field(min_length=2, max_length=24), AfterValidator(_ascending)]


class Analysis(Strict):
    """How the analysis exporter reads Prometheus and which cells it sorts windows into."""

    every: PositiveSeconds
    lookback: PositiveSeconds
    window: PositiveSeconds
    kept_ratio: OpenRatio
    min_windows: int = Field(ge=1)
    batch_requests: Bins
    requests_per_second: Bins
    prompt_tokens: Bins
    cache_hit_ratio: Bins
    latency_seconds: Bins
