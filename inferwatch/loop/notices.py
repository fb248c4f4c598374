"""The receiver's notifications.jsonl -> when which alert was delivered firing or resolved."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inferwatch.stack import receiver


@dataclass(frozen=True)
class Notice:
    """
    One alert of one delivered webhook; received_at is wall-clock seconds.

    Attributes:
        implied: the webhook does not name the alert; it says that nothing in the alert's group fires.
    """

    received_at: float
    alert: str
    status: str
    labels: dict[str, str]
    summary: str
    implied: bool = False


def read(path: Path) -> list[Notice]:
    """
    Return all notices so far, oldest first; none when nothing was delivered yet.

    A group that is over ends all that it held: an Alertmanager that was started again, and does not know an alert
    yet, says so without naming it, and its peers then take the end for told. Such a notice is `implied`: what still
    fires is told again.
    """
    return list(_told(receiver.read(path)))


def _told(deliveries: Iterable[dict[str, Any]]) -> Iterator[Notice]:
    told: dict[tuple[str, tuple[tuple[str, str], ...]], Notice] = {}
    for delivery in deliveries:
        group = delivery.get("groupKey", "")
        for notice in _alerts(delivery):
            yield notice
            told[group, _identity(notice)] = notice
        if delivery.get("status") != "resolved":
            continue
        for key in [key for key in told if key[0] == group]:
            last = told.pop(key)
            if last.status == "firing":
                at = delivery[receiver.RECEIVED_AT]
                yield replace(last, received_at=at, status="resolved", implied=True)


def _identity(notice: Notice) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(notice.labels.items()))


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
        last[_identity(notice)] = notice
    return {n.alert for n in last.values() if n.status == "firing"}
