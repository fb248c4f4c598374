"""States, canary, early signals, drift, the joint table, scaling targets: the parts that warn."""

from typing import Literal

from pydantic import Field, model_validator

from slo.base import Id, OpenRatio, PositiveSeconds, Ratio, Seconds, Strict

Level = Literal["ok", "info", "warn", "critical"]
DriftState = Literal["no", "yes", "unknown", "swapped"]


class For(Strict):
    for_: Seconds = Field(alias="for")


class Hung(For):
    window: PositiveSeconds


class Failing(For):
    window: PositiveSeconds
    min_error_ratio: OpenRatio
    min_bad_events: float = Field(ge=1)


class Vanished(For):
    lookback: PositiveSeconds


class States(Strict):
    """Engine states that alert at once, with how long each must hold."""

    down: For
    no_engine_metrics: For
    hung: Hung
    asleep: For
    failing: Failing
    vanished: Vanished


class Canary(Strict):
    """The schedule of the one-token request."""

    interval_seconds: float = Field(gt=0)
    timeout_seconds: float = Field(gt=0)
    backoff_max_seconds: float = Field(gt=0)
    failing_after: PositiveSeconds


class Floor(Strict):
    """The traffic under which a signal is not judged."""

    per_second: float = Field(gt=0)
    what: str


class JudgedIf(Strict):
    """A signal is judged only where it reached a value within the lookback."""

    at_least: float
    lookback: PositiveSeconds


class Signal(Strict):
    """An early signal: a warning when the statistic over the window meets the condition."""

    id: Id
    unit: str
    condition: Literal[">", "<"]
    threshold: float
    statistic: Literal["mean", "median"] = "mean"
    window: PositiveSeconds
    for_: Seconds = Field(alias="for")
    floor: Floor | None = None
    judged_if: JudgedIf | None = None
    why: str = Field(min_length=1)

    @model_validator(mode="after")
    def _ratios_are_ratios(self) -> "Signal":
        if self.unit == "ratio" and not 0 <= self.threshold <= 1:
            raise ValueError(f"threshold {self.threshold} of a ratio must lie in 0..1 (90 % is written 0.9)")
        return self


class PcaRatioChange(Strict):
    components: int = Field(gt=0)
    judged: int = Field(gt=0)
    threshold: Ratio


class Drift(Strict):
    window: PositiveSeconds
    pca_ratio_change: PcaRatioChange
    min_samples: int = Field(gt=0)


class Band(Strict):
    """A band of the latency's rise over its baseline; the last one has no upper end."""

    id: Id
    up_to_ratio: float | None = None


class Joint(Strict):
    """Latency × drift: a level in every cell."""

    latency_quantile: OpenRatio
    baseline: str
    latency_bands: tuple[Band, ...]
    cells: dict[str, dict[DriftState, Level]]

    @model_validator(mode="after")
    def _every_cell_is_written(self) -> "Joint":
        for band in self.latency_bands:
            missing = {"no", "yes", "unknown", "swapped"} - set(self.cells.get(band.id, {}))
            if missing:
                raise ValueError(f"cells.{band.id} lacks {', '.join(sorted(missing))}; write every cell out")
        if extra := set(self.cells) - {b.id for b in self.latency_bands}:
            raise ValueError(f"cells names no band: {', '.join(sorted(extra))}")
        return self


class ScalingTarget(Strict):
    id: Id
    unit: str
    target: float = Field(gt=0)
    cooldown_seconds: Seconds


class Scaling(Strict):
    window_samples: int = Field(gt=0)
    ewma_alpha: float = Field(gt=0, le=1)
    targets: tuple[ScalingTarget, ...]
