"""Intervals, routes, load stages and release gates: how promises are watched and tried."""

from typing import Literal

from pydantic import Field, model_validator

from slo.base import Id, OpenRatio, PositiveSeconds, Ratio, Strict
from slo.objectives import Severity

PROMETHEUS_RESEND_SECONDS = 60
"""`--rules.alert.resend-delay`: how often Prometheus sends firing and just resolved alerts again."""


def resend_seconds(every: int) -> int:
    """Return after how many seconds a rule evaluated *every* so many is sent again: the first evaluation after the delay."""
    return (PROMETHEUS_RESEND_SECONDS // every + 1) * every


class Intervals(Strict):
    """How often things are read and judged; all in seconds."""

    scrape_seconds: int = Field(gt=0)
    scrape_timeout_seconds: float = Field(gt=0)
    evaluation_seconds: int = Field(gt=0)
    slow_evaluation_seconds: int = Field(gt=0)
    resample_seconds: int = Field(gt=0)
    period_resample_seconds: int = Field(gt=0)
    page_group_wait_seconds: int = Field(ge=0)
    group_wait_seconds: int = Field(ge=0)
    page_group_interval_seconds: int = Field(gt=0)
    group_interval_seconds: int = Field(gt=0)
    repeat_interval_seconds: int = Field(gt=0)
    watchdog_repeat_seconds: int = Field(gt=0)
    resolve_timeout_seconds: int = Field(gt=0)
    notification_promise_seconds: int = Field(gt=0)

    @model_validator(mode="after")
    def _timeout_fits(self) -> "Intervals":
        if self.scrape_timeout_seconds > self.scrape_seconds:
            raise ValueError(
                f"scrape_timeout_seconds {self.scrape_timeout_seconds} is over scrape_seconds "
                f"{self.scrape_seconds}; Prometheus refuses that, lower it"
            )
        return self

    @model_validator(mode="after")
    def _groups_outlast_resends(self) -> "Intervals":
        for key, given, every in (
            ("page_group_interval_seconds", self.page_group_interval_seconds, self.evaluation_seconds),
            ("group_interval_seconds", self.group_interval_seconds, self.resample_seconds),
        ):
            resent = resend_seconds(every)
            if given <= resent:
                raise ValueError(
                    f"{key} {given} must be above the {resent} s after which Prometheus sends an alert that is "
                    f"evaluated every {every} s again: within a shorter one only some of a group's resolved "
                    "alerts are there, and each change is notified anew for 15 minutes"
                )
        return self

    @property
    def base_window_seconds(self) -> int:
        """The shortest window with a trustworthy rate: four scrapes."""
        return 4 * self.scrape_seconds


class Route(Strict):
    severity: Severity
    receiver: Id


class Stage(Strict):
    duration: PositiveSeconds
    requests_per_second: float = Field(gt=0)


class LoadClient(Strict):
    """Above these (share of one core; P99 event-loop lag) the load client measures itself, not the server."""

    max_cpu_ratio: OpenRatio
    max_lag_seconds: float = Field(gt=0)


class Load(Strict):
    stages: tuple[Stage, ...] = Field(min_length=1)
    client: LoadClient


class Gate(Strict):
    """
    One condition a release must hold; exactly one bound is set.

    *lane* and *tenant*: only the requests of that lane or tenant are judged; throughput is that of all.
    """

    id: Id
    sli: Literal[
        "time_to_first_token",
        "request_duration",
        "time_per_output_token",
        "inter_chunk_gap",
        "latency_from_schedule",
        "errors",
        "throughput",
    ]
    lane: str | None = Field(default=None, min_length=1)
    tenant: str | None = Field(default=None, min_length=1)
    quantile: OpenRatio | None = None
    max_seconds: float | None = Field(default=None, gt=0)
    max_ratio: Ratio | None = None
    max_loss_ratio: Ratio | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> "Gate":
        bounds = {
            "errors": {"max_ratio"},
            "throughput": {"max_loss_ratio"},
        }.get(self.sli, {"quantile", "max_seconds"})
        given = {
            name
            for name in ("quantile", "max_seconds", "max_ratio", "max_loss_ratio")
            if getattr(self, name) is not None
        }
        if given != bounds:
            raise ValueError(
                f"a gate on {self.sli} takes {' and '.join(sorted(bounds))}, not {sorted(given)}"
            )
        if self.sli == "throughput" and (self.lane or self.tenant):
            raise ValueError("a gate on throughput judges all requests together; take lane and tenant out")
        return self


class GateTest(Strict):
    """How gates decide: the paired test of throughput, what is cut off, and the rate that must be reached."""

    significance: OpenRatio
    min_pairs: int = Field(ge=2)
    max_pairs: int = Field(ge=2)
    design_loss_ratio: Ratio
    warmup_seconds: float = Field(ge=0)
    min_rate_ratio: OpenRatio

    @model_validator(mode="after")
    def _pairs_in_order(self) -> "GateTest":
        if self.max_pairs < self.min_pairs:
            raise ValueError(f"max_pairs {self.max_pairs} is under min_pairs {self.min_pairs}; raise it")
        return self
