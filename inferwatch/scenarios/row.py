"""What a row of the failure matrix states before it runs: the fault, what must be delivered, what must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.rag_shape import Instance, Users
from inferwatch.scenarios.shown import Shown, uuid

if TYPE_CHECKING:
    from inferwatch.loop.notices import Notice
    from inferwatch.scenarios.stage import Stage

RECOVERY_SECONDS = 480.0
"""Longest short burn window and signal window (5 m), and three minutes for evaluation and a group's interval."""

StageName = Literal["fleet", "watchers", "sentinel", "nodes", "rag", "collector", "drift"]


class Fault(Protocol):
    """Something that goes wrong and can be mended; `mends_itself_seconds` where it ends without our doing."""

    @property
    def mends_itself_seconds(self) -> float | None: ...

    def begin(self, stage: Stage, row: Row) -> None: ...

    def end(self, stage: Stage, row: Row) -> None: ...


@dataclass(frozen=True)
class Expected:
    """
    An alert that the fault must bring, and the numbers that theory needs to say how soon.

    Attributes:
        labels: which one of that name, where there are several.
        level: share of events that are bad from the fault on; for a signal, what its statistic goes to.
        healthy: what a signal's statistic is before the fault.
        seen_as: the alert whose condition is what this one waits for, where that differs by fault.
        refused: the engine that is down refuses its probes; else it may be silent, which is seen later.
        joins: another alert of its kind may fire for its service already, so that a group's interval is waited for.
        events_per_second: of the SLO while the fault is on, where it is not the row's own rate.
        status: `resolved` where the fault must end an alert that always fires.
        afterwards: the fault itself cuts the way to people: it is told once it is mended, and its time counts from there.
        once: one incident is one notification: a second one that says firing fails the row.
        recovers_seconds: how long recovery is waited for; None where the run cannot show it.
        why_not_shown: the reason for that None.
    """

    alert: str
    labels: Mapping[str, str] = field(default_factory=dict)
    level: float = 1.0
    healthy: float = 0.0
    seen_as: str | None = None
    refused: bool = False
    joins: bool = False
    events_per_second: float | None = None
    status: Literal["firing", "resolved"] = "firing"
    afterwards: bool = False
    once: bool = False
    recovers_seconds: float | None = RECOVERY_SECONDS
    why_not_shown: str = ""

    def matches(self, notice: Notice) -> bool:
        """Whether the notice is about this alert, firing or resolved."""
        return notice.alert == self.alert and all(notice.labels.get(k) == v for k, v in self.labels.items())


@dataclass(frozen=True)
class History:
    """The past that is written for the row's service; the live rate where none is given."""

    requests_per_second: float | None = None
    bad_ratios: Mapping[str, float] = field(default_factory=dict)
    days: float | None = None


@dataclass(frozen=True)
class Row:
    """
    One scenario.

    Attributes:
        name: also the id of its service in the fleet.
        may_fire: alerts that are neither demanded nor a failure; why stands beside each row.
        silent: alerts that must not come, beside every page that is not listed.
        quiet: nothing at all may come, not even a warning.
        engines: engines of the service, each with requests_per_second; simulated, or recorded where it shows a page.
        direct: Prometheus scrapes them itself, without our exporter.
        shows: the recorded things of the row before its fault.
        lead_seconds: for how long the stage must have been healthy at least, beyond its warm-up.
        rag: processes of the row's RAG service, where it has one, and who asks them.
        cache_hit_before: share of lookups that the service's cache is said to have answered in the hour before.
        sent: what the row's service tells its drift exporter, where it has one.
        latency_before_seconds: the P95 that its whole requests are said to have had in the hour before.
        fault_seconds: the fault lasts for so long at least, so that what it must not bring has its time too.
        gpus: GPUs of the first model in the throughput floor; 0: unknown.
        slos: ids of the SLOs that the service has; all when empty.
        after: rows of the same stage whose fault must have ended before this one begins.
        ci: in the reduced set that CI runs.
    """

    name: str
    fault: Fault
    fires: tuple[Expected, ...] = ()
    may_fire: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    quiet: bool = False
    stage: StageName = "fleet"
    engines: int = 1
    direct: bool = False
    shows: Shown = field(default_factory=Shown)
    rag: tuple[Instance, ...] = ()
    users: Users = field(default_factory=Users)
    cache_hit_before: float = 0.0
    sent: Sent | None = None
    latency_before_seconds: float = 0.0
    fault_seconds: float = 0.0
    lead_seconds: float = 0.0
    requests_per_second: float = 4.0
    history: History = History()
    gpus: int = 0
    slos: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    ci: bool = False

    @property
    def live_rate(self) -> float:
        """Requests per second of the whole service."""
        return self.engines * self.requests_per_second

    @property
    def past_rate(self) -> float:
        """Requests per second that its history is written with."""
        given = self.history.requests_per_second
        return self.live_rate if given is None else given

    def owns(self, notice: Notice) -> bool:
        """Whether a notice of the row's stage belongs to this row."""
        if self.stage in ("fleet", "drift"):
            return notice.labels.get("service") == self.name
        if self.stage == "nodes":
            named = {self.name, uuid(self.name)} & set(notice.labels.values())
            return bool(named) or any(one.matches(notice) for one in self.fires)
        if self.stage == "rag":
            service = notice.labels.get("service", "")
            return service == self.name or (not service and any(one.matches(notice) for one in self.fires))
        listed = (*self.may_fire, *self.silent)
        return notice.alert in listed or any(one.matches(notice) for one in self.fires)
