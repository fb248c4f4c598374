"""The promises of a RAG service: each stage's latency and errors, and what is judged of pools, caches and context."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from slo.base import OpenRatio, PositiveSeconds, Seconds, Strict
from slo.names.rag import BOUNDS_SECONDS, STAGE_REQUEST, STAGES


def _a_bound(seconds: float) -> float:
    if seconds not in BOUNDS_SECONDS:
        below = [b for b in BOUNDS_SECONDS if b < seconds][-1:]
        above = [b for b in BOUNDS_SECONDS if b > seconds][:1]
        choice = " or ".join(f"{bound:g}" for bound in (*below, *above))
        raise ValueError(f"{seconds:g} is not a bucket bound of span metrics; use {choice}")
    return seconds


Bound = Annotated[float, AfterValidator(_a_bound)]
"""Seconds that are a bucket bound, so that no quantile has to be interpolated to be judged."""


class Stage(Strict):
    """One stage: its judged quantile stays within the threshold, its share of errors under the limit."""

    id: str
    threshold_seconds: Bound
    max_error_ratio: OpenRatio
    why: str = Field(min_length=1)


class Network(Strict):
    """Client-seen less server-seen latency; unknown where both sides did not count the same requests."""

    max_mean_seconds: float = Field(gt=0)
    max_count_difference_ratio: OpenRatio
    for_: Seconds = Field(alias="for")


class Pool(Strict):
    """A connection pool: how long a caller may wait for one, and how much of it may be in use."""

    max_wait_seconds: Bound
    max_use_ratio: OpenRatio
    max_resets_ratio: OpenRatio
    min_resets: float = Field(ge=1)
    min_acquisitions: float = Field(ge=1)
    for_: Seconds = Field(alias="for")


class CacheFall(Strict):
    """A hit ratio that fell under a part of its own median over the lookback, where it was worth something."""

    fall_to_ratio: OpenRatio
    judged_from_ratio: OpenRatio
    lookback: PositiveSeconds
    min_history: PositiveSeconds
    min_lookups: float = Field(ge=1)
    for_: Seconds = Field(alias="for")

    @model_validator(mode="after")
    def _history_fits(self) -> "CacheFall":
        if self.min_history > self.lookback:
            raise ValueError(
                f"min_history {self.min_history} s is longer than lookback {self.lookback} s; shorten it"
            )
        return self


class Truncation(Strict):
    """Contexts that did not fit."""

    max_ratio: OpenRatio
    min_contexts: float = Field(ge=1)
    window: PositiveSeconds
    for_: Seconds = Field(alias="for")


class Versions(Strict):
    """How embedding versions are held against each other: by the judged quantile and its confidence interval."""

    confidence: OpenRatio
    worse_by_ratio: float = Field(gt=0)
    lookback: PositiveSeconds
    min_requests: int = Field(ge=100)
    most: int = Field(ge=2, le=16)
    for_: Seconds = Field(alias="for")


class Collector(Strict):
    """The collector that spans go through."""

    max_queue_ratio: OpenRatio
    for_: Seconds = Field(alias="for")


class Rag(Strict):
    """Everything that slo.yaml says under `rag`."""

    window: PositiveSeconds
    quantiles: tuple[OpenRatio, ...] = Field(min_length=1)
    judged_quantile: OpenRatio
    min_requests: float = Field(ge=1)
    for_: Seconds = Field(alias="for")
    stages: tuple[Stage, ...]
    spans_missing_for: Seconds
    network: Network
    pool: Pool
    cache: CacheFall
    truncation: Truncation
    versions: Versions
    rates_per_second: tuple[float, ...] = Field(min_length=2)
    latency_bands_seconds: tuple[Bound, ...] = Field(min_length=2)
    collector: Collector

    @model_validator(mode="after")
    def _every_stage_once(self) -> "Rag":
        wanted, ids = (STAGE_REQUEST, *STAGES), [stage.id for stage in self.stages]
        if sorted(ids) != sorted(wanted):
            raise ValueError(f"stages: {', '.join(ids)}; each of {', '.join(wanted)} stands once")
        whole = self.stage(STAGE_REQUEST).threshold_seconds
        for stage in self.stages:
            if stage.threshold_seconds > whole:
                raise ValueError(
                    f"stages: {stage.id} may take {stage.threshold_seconds:g} s and the whole request "
                    f"{whole:g} s; lower the first or raise the second"
                )
        return self

    @model_validator(mode="after")
    def _lists_fit(self) -> "Rag":
        if self.judged_quantile not in self.quantiles:
            raise ValueError(f"judged_quantile {self.judged_quantile:g} is not in quantiles; add it there")
        for name, values in (
            ("rates_per_second", self.rates_per_second),
            ("latency_bands_seconds", self.latency_bands_seconds),
        ):
            if list(values) != sorted(set(values)):
                raise ValueError(f"{name}: {list(values)} must rise")
        if self.rates_per_second[0] != 0:
            raise ValueError("rates_per_second: the first class begins at 0; put 0 in front")
        return self

    def rate_classes(self) -> tuple[tuple[str, float, float | None], ...]:
        """(name, from, up to) of each class of request rates: "2-4", and "16+" without an upper end."""
        bounds = self.rates_per_second
        return tuple(
            (f"{low:g}-{high:g}" if high is not None else f"{low:g}+", low, high)
            for low, high in zip(bounds, [*bounds[1:], None], strict=True)
        )

    def stage(self, stage_id: str) -> Stage:
        """Return a stage by id.

        Raises KeyError when slo.yaml has none.
        """
        for stage in self.stages:
            if stage.id == stage_id:
                return stage
        raise KeyError(f"slo.yaml has no RAG stage {stage_id!r}; it has {[s.id for s in self.stages]}")
