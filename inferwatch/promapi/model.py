"""What the APIs answer, as frozen values: labels are plain mappings, times are Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """One series at one instant; *value* may be NaN or an infinity, as Prometheus said."""

    labels: Labels
    timestamp: float
    value: float


@dataclass(frozen=True)
class Series:
    """One series over a range: (Unix seconds, value) in time order, gaps left out."""

    labels: Labels
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Target:
    """One active scrape target; *health* is up, down or unknown."""

    job: str
    instance: str
    labels: Labels
    scrape_url: str
    health: str
    last_error: str
    last_scrape: float | None


@dataclass(frozen=True)
class Alert:
    """One alert; *state* is pending or firing (Prometheus), active, suppressed or unprocessed (Alertmanager)."""

    labels: Labels
    annotations: Labels
    state: str
    active_at: float | None
    value: float | None = None
    fingerprint: str = ""
    silenced_by: tuple[str, ...] = ()
    inhibited_by: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The alertname label, empty when there is none."""
        return self.labels.get("alertname", "")


@dataclass(frozen=True)
class Rule:
    """One rule; *kind* is recording or alerting, *health* is ok, err or unknown."""

    name: str
    kind: str
    query: str
    health: str
    last_error: str
    labels: Labels = field(default_factory=dict)
    state: str = ""
    alerts: tuple[Alert, ...] = ()
    evaluation_seconds: float = 0.0


@dataclass(frozen=True)
class RuleGroup:
    """One group of rules, evaluated in order every *interval_seconds*."""

    name: str
    file: str
    interval_seconds: float
    rules: tuple[Rule, ...]
