"""The receiver's notifications.jsonl -> when which alert was delivered firing or resolved."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inferwatch.stack import receiver


@dataclass(frozen=True)
class Notice:
    """One alert of one delivered webhook; received_at is wall-clock seconds."""

    received_at: float
    alert: str
    status: str
    labels: dict[str, str]
    summary: str


def read(path: Path) -> list[Notice]:
    """Return all notices so far, oldest first; none when nothing was delivered yet."""
    return [notice for delivery in receiver.read(path) for notice in _alerts(delivery)]


def _alerts(delivery: dict[str, Any]) -> Iterator[Notice]:
    for alert in delivery["alerts"]:
        yield Notice(
            delivery[receiver.RECEIVED_AT],
            alert["labels"]["alertname"],
            alert["status"],
            dict(alert["labels"]),
            alert.get("annotations", {}).get("summary", ""),
        )


def first(path: Path, names: tuple[str, ...], status: str, since: float) -> Notice | None:
    """Return the first notice of these alerts and that status received at or after *since*."""
    return next(
        (n for n in read(path) if n.alert in names and n.status == status and n.received_at >= since),
        None,
    )


def wait_for_any(
    path: Path, names: tuple[str, ...], status: str, since: float, timeout_seconds: float
) -> Notice | None:
    """Wait until one of these alerts was delivered; None after the timeout."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        if notice := first(path, names, status, since):
            return notice
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.2)


def unresolved(path: Path) -> set[str]:
    """Return the names of alerts whose last notice says firing, for any of their label sets."""
    last: dict[tuple[tuple[str, str], ...], Notice] = {}
    for notice in read(path):
        last[tuple(sorted(notice.labels.items()))] = notice
    return {n.alert for n in last.values() if n.status == "firing"}
