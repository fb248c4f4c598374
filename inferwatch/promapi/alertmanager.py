"""Alertmanager's v2 API -> frozen alerts."""

from __future__ import annotations

from inferwatch.promapi import decode
from inferwatch.promapi.errors import PromError
from inferwatch.promapi.model import Alert
from inferwatch.promapi.transport import Transport


class Alertmanager(Transport):
    """One Alertmanager, synchronous; raises PromError like Prometheus does."""

    def alerts(self) -> list[Alert]:
        """Alerts it holds, silenced and inhibited ones too (see their *state*)."""
        answer = self.json("GET", "/api/v2/alerts")
        if not isinstance(answer, list):
            raise PromError(f"{self.base_url} did not list its alerts: {answer}")
        return [decode.alertmanager_alert(entry) for entry in answer]

    def reload(self) -> None:
        """Read the configuration again."""
        self.post("/-/reload")
