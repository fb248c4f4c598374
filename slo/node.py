"""The node's numbers: how often the agent looks, what counts as settled, bound, starved or squeezed."""

from pydantic import Field, model_validator

from slo.base import OpenRatio, PositiveSeconds, Ratio, Seconds, Strict


class Settled(Strict):
    """Memory is settled when `samples` readings in a row span less than `spread_bytes`."""

    samples: int = Field(ge=2)
    spread_bytes: int = Field(gt=0)


class Bound(Strict):
    """When a GPU is called idle, and from which share of a roof it is called bound by it."""

    idle_below_ratio: OpenRatio
    saturated_from_ratio: OpenRatio

    @model_validator(mode="after")
    def _idle_lies_under_saturated(self) -> "Bound":
        if self.idle_below_ratio >= self.saturated_from_ratio:
            raise ValueError(
                f"idle_below_ratio {self.idle_below_ratio} must lie under saturated_from_ratio "
                f"{self.saturated_from_ratio}; lower the first or raise the second"
            )
        return self


class Sampling(Strict):
    """How often each class of reading is taken; a scrape never waits for one."""

    sampler_seconds: float = Field(gt=0)
    gpm_seconds: float = Field(ge=0.2, description="NVML wants over 100 ms between two GPM samples")
    core_thread_seconds: float = Field(gt=0)
    process_seconds: float = Field(gt=0)
    slow_seconds: float = Field(gt=0)
    longest_window_seconds: float = Field(gt=0)


class Threshold(Strict):
    """A ratio that must be passed for so long; `window` is what it is averaged over."""

    above_ratio: Ratio
    window: PositiveSeconds
    for_: Seconds = Field(alias="for")


class Counted(Strict):
    """Events within a window."""

    window: PositiveSeconds
    for_: Seconds = Field(alias="for")


class NodeAlerts(Strict):
    """The node's own limits; the early signal cpu-binding stands under signals."""

    gpu_lost_for: Seconds
    agent_down_for: Seconds
    gpu_unreadable_for: Seconds
    xid_window: PositiveSeconds
    ecc_window: PositiveSeconds
    thermal_throttle: Threshold
    power_brake: Threshold
    power_cap: Threshold
    memory_nearly_full: Threshold
    runqueue_delay: Threshold
    gpu_waits_for_cpu: Threshold
    cpu_throttled: Threshold
    memory_pressure: Threshold
    noisy_neighbour: Threshold
    memory_events: Counted


class NodeJoint(Strict):
    """GPU × engine: both halves must hold. How far latency must rise stands under joint."""

    window: PositiveSeconds
    for_: Seconds = Field(alias="for")
    gpu_idle_below_ratio: OpenRatio
    queue_growth_requests: float = Field(gt=0)
    baseline_window: PositiveSeconds
    throttled_from_ratio: OpenRatio
    memory_high_from_ratio: OpenRatio
    min_requests: float = Field(gt=0)


class Node(Strict):
    """Everything that slo.yaml says under `node`."""

    sampling: Sampling
    memory_settled: Settled
    bound: Bound
    alerts: NodeAlerts
    joint: NodeJoint
