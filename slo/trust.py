"""When numbers are trusted, how latency is summarised, how the watchers are watched, where links go."""

import ipaddress
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from slo.base import OpenRatio, PositiveSeconds, Ratio, Seconds, Strict
from slo.signals import For


class Resets(Strict):
    """A counter that falls so often within the window has no trustworthy rate."""

    window: PositiveSeconds
    at_least: int = Field(ge=2)


class Latency(Strict):
    """How latency distributions are summarised."""

    quantiles: tuple[OpenRatio, ...] = Field(min_length=1)
    window: PositiveSeconds
    off_scale_ratio: OpenRatio
    off_scale_for: Seconds
    mixed_bounds_for: Seconds


class Scrapes(For):
    window: PositiveSeconds
    min_success_ratio: Ratio


class Trust(Strict):
    """What makes a number doubtful."""

    resets: Resets
    scrapes: Scrapes


class Unsent(For):
    """A window in which no Alertmanager took any alert, again and again."""

    window: PositiveSeconds


class Stack(Strict):
    """How long the stack's own parts may be unwell; failures are counted over the window."""

    window: PositiveSeconds
    exporter_down: For
    alertmanager_down: For
    alerts_not_sent: Unsent
    config_failed: For
    cluster_degraded: For
    rules_slow: For


class Links(Strict):
    """What stands in front of runbook files and dashboard paths in notifications."""

    runbook_base: str = Field(min_length=1)
    dashboard_base: str = Field(min_length=1)

    @model_validator(mode="after")
    def _no_slash_at_the_end(self) -> "Links":
        for base in (self.runbook_base, self.dashboard_base):
            if base.endswith("/"):
                raise ValueError(f"{base!r} ends with a slash; remove it")
        return self

    @property
    def dashboards_are_local(self) -> bool:
        """Whether dashboards open on this machine only."""
        host = urlsplit(self.dashboard_base).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host in {"", "localhost"}

    @property
    def runbooks_are_local(self) -> bool:
        """Whether runbooks are a path, which opens in no browser."""
        return not urlsplit(self.runbook_base).scheme
