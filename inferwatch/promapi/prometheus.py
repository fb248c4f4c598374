"""PromQL in, frozen samples, targets, rules and alerts out: the one Prometheus client of this project."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from inferwatch.promapi import decode
from inferwatch.promapi.errors import PromError
from inferwatch.promapi.model import Alert, RuleGroup, Sample, Series, Target
from inferwatch.promapi.transport import Transport

log = logging.getLogger(__name__)


class Prometheus(Transport):
    """
    A Prometheus (2.x or 3.x) or anything that speaks its HTTP API. Synchronous; use as a context manager.

    Every method raises PromError when the server cannot be reached, refuses the query or answers nonsense.
    An empty list means that Prometheus knows no such series: it never stands for zero.
    """

    def query(self, expr: str, *, at: float | None = None) -> list[Sample]:
        """Instant query, now or at Unix seconds *at*."""
        params = [("query", expr)] + ([("time", f"{at:.3f}")] if at is not None else [])
        return decode.samples(self._data("POST", "/api/v1/query", params, about=expr))

    def value(self, expr: str, *, at: float | None = None) -> float | None:
        """The single number that *expr* gives, None where there is none, an error where there are several."""
        found = self.query(expr, at=at)
        if len(found) > 1:
            raise PromError(f"{expr!r} gave {len(found)} series where one was expected; aggregate it")
        return found[0].value if found else None

    def query_range(self, expr: str, *, start: float, end: float, step_seconds: float) -> list[Series]:
        """Range query from *start* to *end* (Unix seconds, both included) every *step_seconds*."""
        params = [
            ("query", expr),
            ("start", f"{start:.3f}"),
            ("end", f"{end:.3f}"),
            ("step", f"{step_seconds:g}"),
        ]
        return decode.series(self._data("POST", "/api/v1/query_range", params, about=expr))

    def series(
        self, matchers: Iterable[str], *, start: float | None = None, end: float | None = None
    ) -> list[dict[str, str]]:
        """Label sets of the series that any of *matchers* selects."""
        params = [("match[]", matcher) for matcher in matchers]
        if start is not None:
            params.append(("start", f"{start:.3f}"))
        if end is not None:
            params.append(("end", f"{end:.3f}"))
        found: list[dict[str, str]] = self._data("POST", "/api/v1/series", params, about=str(params))
        return found

    def targets(self) -> list[Target]:
        """Active scrape targets."""
        data = self._data("GET", "/api/v1/targets", [("state", "active")], about="targets")
        return [decode.target(entry) for entry in data["activeTargets"]]

    def rules(self) -> list[RuleGroup]:
        """All rule groups with the health of each rule."""
        data = self._data("GET", "/api/v1/rules", [], about="rules")
        return [decode.rule_group(entry) for entry in data["groups"]]

    def alerts(self) -> list[Alert]:
        """Pending and firing alerts."""
        data = self._data("GET", "/api/v1/alerts", [], about="alerts")
        return [decode.prometheus_alert(entry) for entry in data["alerts"]]

    def version(self) -> str:
        """The server's version, empty where the build carries none."""
        data = self._data("GET", "/api/v1/status/buildinfo", [], about="build information")
        return str(data.get("version", ""))

    def reload(self) -> None:
        """Read configuration and rules again (needs --web.enable-lifecycle)."""
        self.post("/-/reload")

    def _data(self, method: str, path: str, params: list[tuple[str, str]], *, about: str) -> Any:
        answer = self.json(method, path, params)
        if not isinstance(answer, dict) or answer.get("status") != "success":
            said = answer.get("error", answer) if isinstance(answer, dict) else answer
            raise PromError(f"{self.base_url} refused {about}: {said}")
        for warning in [*answer.get("warnings", ()), *answer.get("infos", ())]:
            log.warning("%s says of %s: %s", self.base_url, about, warning)
        return answer["data"]
