"""One service of slo.yaml -> the selectors, labels and base window that its rules share."""

from dataclasses import dataclass

from alerts.promql import window
from slo.names import labels
from slo.objectives import Service
from slo.spec import Spec


@dataclass(frozen=True)
class Scope:
    """What rules of one service need: its selectors, static labels and the base window."""

    spec: Spec
    service: Service

    @property
    def labels(self) -> dict[str, str]:
        """The static labels of everything that is recorded for the service."""
        return {labels.SERVICE: self.service.id}

    @property
    def base_seconds(self) -> int:
        """The base window in seconds: the shortest one with a trustworthy rate."""
        return self.spec.intervals.base_window_seconds

    @property
    def base(self) -> str:
        """The base window as a range."""
        return window(self.base_seconds)

    def raw(self, metric: str, *matchers: str) -> str:
        """Return a selector of a raw series of the service."""
        return f"{metric}{{{','.join((self.service.matchers(), *matchers))}}}"

    def recorded(self, record: str, *matchers: str) -> str:
        """Return a selector of a series that the service's rules wrote."""
        own = f'{labels.SERVICE}="{self.service.id}"'
        return f"{record}{{{','.join((own, *matchers))}}}"
