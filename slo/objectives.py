"""Services, their SLOs and the error-budget windows of slo.yaml."""

from typing import Literal

from pydantic import Field, model_validator

from slo.base import Id, OpenRatio, PositiveSeconds, Ratio, Seconds, Strict, repeated
from slo.buckets import LATENCY_BOUNDS_SECONDS, neighbours

Severity = Literal["page", "ticket", "warning"]


class BurnWindow(Strict):
    """One row of the burn-rate table: both windows must burn faster than the factor."""

    severity: Literal["page", "ticket"]
    long: PositiveSeconds
    short: PositiveSeconds
    budget_percent: float = Field(gt=0, le=100)

    @model_validator(mode="after")
    def _short_is_shorter(self) -> "BurnWindow":
        if self.short >= self.long:
            raise ValueError(f"short ({self.short}s) must be shorter than long ({self.long}s)")
        return self


class Budget(Strict):
    """The error budget's period, its burn windows and what a window needs before it is judged."""

    period_days: int = Field(gt=0, le=366)
    windows: tuple[BurnWindow, ...] = Field(min_length=1)
    min_history_ratio: Ratio
    min_bad_events: float = Field(ge=0)
    low_budget_ratio: Ratio

    @model_validator(mode="after")
    def _period_holds_windows(self) -> "Budget":
        for window in self.windows:
            if window.long > self.period_days * 86_400:
                raise ValueError(
                    f"window of {window.long}s is longer than the period of {self.period_days} d"
                )
        return self


class Slo(Strict):
    """A promise as a good/total ratio: `availability`, or `latency` (within a threshold)."""

    id: Id
    kind: Literal["availability", "latency"]
    objective: OpenRatio
    sli: str | None = None
    threshold_seconds: float | None = None
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _latency_names_a_bound(self) -> "Slo":
        if self.kind == "availability":
            if self.sli is not None or self.threshold_seconds is not None:
                raise ValueError("an availability SLO takes neither sli nor threshold_seconds; remove them")
            return self
        if self.sli not in LATENCY_BOUNDS_SECONDS:
            raise ValueError(f"sli {self.sli!r} is unknown; use one of {', '.join(LATENCY_BOUNDS_SECONDS)}")
        if self.threshold_seconds not in LATENCY_BOUNDS_SECONDS[self.sli]:
            below, above = neighbours(self.sli, self.threshold_seconds or 0.0)
            choice = " or ".join(str(b) for b in (below, above) if b is not None)
            raise ValueError(
                f"threshold_seconds {self.threshold_seconds} is not a bucket bound of {self.sli}; use {choice}"
            )
        return self


class ThroughputFloor(Strict):
    """Output tokens per second and GPU that must be reached while requests wait."""

    tokens_per_second_per_gpu: dict[str, float]
    gpus: int = Field(ge=0)
    gpu_model: str
    window: PositiveSeconds
    for_: Seconds = Field(alias="for")

    @model_validator(mode="after")
    def _model_is_listed(self) -> "ThroughputFloor":
        if self.gpus and self.gpu_model not in self.tokens_per_second_per_gpu:
            raise ValueError(
                f"gpu_model {self.gpu_model!r} has no entry in tokens_per_second_per_gpu; add one"
            )
        return self

    @property
    def tokens_per_second(self) -> float | None:
        """The floor of the whole service, or None where the GPUs are not known."""
        return self.gpus * self.tokens_per_second_per_gpu[self.gpu_model] if self.gpus else None


class Service(Strict):
    """A set of series and the promises made for them."""

    id: Id
    selector: dict[str, str] = Field(min_length=1)
    slos: tuple[Slo, ...] = Field(min_length=1)
    throughput_floor: ThroughputFloor
    inference_handlers: tuple[str, ...] = Field(min_length=1)
    # A service whose latency thresholds nobody accepted yet: they are judged and shown, and notify nobody.
    observe: bool = False
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> "Service":
        if twice := repeated([s.id for s in self.slos]):
            raise ValueError(f"slo id {twice[0]!r} stands twice in service {self.id!r}; rename one")
        return self

    def matchers(self) -> str:
        """The selector as PromQL label matchers, without braces."""
        texts = {
            name: value.replace("\\", "\\\\").replace('"', '\\"') for name, value in self.selector.items()
        }
        return ",".join(
            f'{name}=~"{text[1:]}"' if text.startswith("~") else f'{name}="{text}"'
            for name, text in texts.items()
        )
