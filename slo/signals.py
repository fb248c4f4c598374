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
    starting: For
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


class Rejected(For):
    """Vectors that are refused: the share over the window that warns."""

    window: PositiveSeconds
    above_ratio: OpenRatio
    min_vectors: int = Field(ge=1)


class RetrievalHealth(For):
    """Retrievals that found nothing, or whose best score is under low_score."""

    window: PositiveSeconds
    low_score: float
    above_ratio: OpenRatio
    min_retrievals: int = Field(ge=1)


class Drift(Strict):
    """When embeddings are judged, by how many of them, and what each state needs."""

    window: PositiveSeconds
    slices: int = Field(ge=2, le=120)
    every: PositiveSeconds
    pca_ratio_change: PcaRatioChange
    min_samples: int = Field(ge=50)
    sample_size: int = Field(ge=50)
    false_alarm_rate: float = Field(gt=0, le=0.2)
    exit_ratio: float = Field(gt=0, le=1)
    swap_likeness: OpenRatio
    rejected: Rejected
    swapped: For
    unknown: For
    retrieval: RetrievalHealth

    @model_validator(mode="after")
    def _sizes_fit(self) -> "Drift":
        if self.sample_size < self.min_samples:
            raise ValueError(
                f"sample_size {self.sample_size} is under min_samples {self.min_samples}; raise it"
            )
        if self.pca_ratio_change.judged > self.pca_ratio_change.components:
            raise ValueError("pca_ratio_change.judged is over its components; lower it")
        if self.window % self.slices:
            raise ValueError(f"window {self.window} s is no whole number of {self.slices} slices; change one")
        return self


class Band(Strict):
    """A band of the latency's rise over its baseline; the last one has no upper end."""

    id: Id
    up_to_ratio: float | None = Field(default=None, gt=0)


class JointLatency(Strict):
    """A latency that is held against drift; objective_seconds where no SLO of the service has the sli."""

    sli: Literal["request_duration", "time_to_first_token", "retrieval"]
    objective_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _retrieval_has_an_objective(self) -> "JointLatency":
        if self.sli == "retrieval" and self.objective_seconds is None:
            raise ValueError("retrieval has no SLO to take an objective from; give objective_seconds")
        return self


class Joint(Strict):
    """Latency × drift: a level in every cell."""

    latency_quantile: OpenRatio
    latencies: tuple[JointLatency, ...] = Field(min_length=1)
    baseline: str
    baseline_span: PositiveSeconds
    baseline_min_history: OpenRatio
    max_freeze: PositiveSeconds
    min_requests: int = Field(ge=1)
    hysteresis_ratio: float = Field(ge=0)
    for_: Seconds = Field(alias="for")
    warn_for: Seconds
    latency_bands: tuple[Band, ...]
    cells: dict[str, dict[DriftState, Level]]

    @model_validator(mode="after")
    def _bands_rise(self) -> "Joint":
        ends = [band.up_to_ratio for band in self.latency_bands]
        if len(ends) < 2 or ends[-1] is not None or None in ends[:-1]:
            raise ValueError(
                "latency_bands: each band but the last needs up_to_ratio, the last must have none"
            )
        bounds = [end for end in ends if end is not None]
        if bounds != sorted(set(bounds)):
            raise ValueError(f"latency_bands: up_to_ratio must rise from band to band, not {bounds}")
        if self.hysteresis_ratio >= bounds[0]:
            raise ValueError(f"hysteresis_ratio must be under the lowest border {bounds[0]:g}")
        return self

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
