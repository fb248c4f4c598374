"""Jaeger's query API -> frozen spans."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inferwatch.promapi.errors import PromError
from inferwatch.promapi.transport import Transport


@dataclass(frozen=True)
class Span:
    """One span; times in microseconds, as Jaeger keeps them. *parent*: span id, "" for the root."""

    span_id: str
    parent: str
    service: str
    name: str
    start_us: int
    duration_us: int
    tags: Mapping[str, Any]

    @property
    def stage(self) -> str:
        """`rag.stage`, "" where it has none."""
        return str(self.tags.get("rag.stage", ""))

    @property
    def failed(self) -> bool:
        """Whether its status is an error."""
        return self.tags.get("otel.status_code") == "ERROR"


class Jaeger(Transport):
    """The query API on *base_url*. An unknown trace is an empty list."""

    def trace_text(self, trace_id: str) -> dict[str, Any]:
        """The trace as Jaeger answers it; without spans when it is not there."""
        try:
            found: dict[str, Any] = self.json("GET", f"/api/traces/{trace_id}")
        except PromError as error:
            if "404" not in str(error):
                raise
            return {"data": []}
        return found

    def trace(self, trace_id: str) -> list[Span]:
        """The trace's spans."""
        return [span for one in self.trace_text(trace_id).get("data") or [] for span in spans_of(one)]

    def services(self) -> list[str]:
        """Services that sent spans."""
        return list(self.json("GET", "/api/services").get("data") or [])


def spans_of(trace: Mapping[str, Any]) -> list[Span]:
    """One trace of Jaeger's JSON."""
    services = {key: process["serviceName"] for key, process in trace["processes"].items()}
    return [
        Span(
            span_id=one["spanID"],
            parent=next((r["spanID"] for r in one["references"] if r["refType"] == "CHILD_OF"), ""),
            service=services[one["processID"]],
            name=one["operationName"],
            start_us=one["startTime"],
            duration_us=one["duration"],
            tags={tag["key"]: tag["value"] for tag in one["tags"]},
        )
        for one in trace["spans"]
    ]
