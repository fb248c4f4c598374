"""The receiver's notifications.jsonl -> when which alert was delivered firing or resolved."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


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
    if not path.exists():
        return []
    return [
        notice
        for line in path.read_text(encoding="utf-8").splitlines()
        for notice in _alerts(json.loads(line))
    ]


def _alerts(delivery: dict[str, object]) -> Iterator[Notice]:
    received_at = float(str(delivery["received_at"]))
    payload = delivery["payload"]
    assert isinstance(payload, dict)
    for alert in payload["alerts"]:
        yield Notice(
            received_at,
            alert["labels"]["alertname"],
            alert["status"],
            dict(alert["labels"]),
            alert.get("annotations", {}).get("summary", ""),
        )


def first(path: Path, alert: str, status: str, since: float) -> Notice | None:
    """Return the first notice of that alert and status received at or after *since*."""
    return next(
        (n for n in read(path) if n.alert == alert and n.status == status and n.received_at >= since),
        None,
    )


def wait_for(
    path: Path,
    alert: str,
    status: str,
    since: float,
    timeout_seconds: float,
    keep_alive: Callable[[], None] = lambda: None,
) -> Notice | None:
    """Wait until the notice is there; None after the timeout.

    *keep_alive* is called between looks, for what must go on meanwhile.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        if notice := first(path, alert, status, since):
            return notice
        if time.monotonic() >= deadline:
            return None
        keep_alive()
        time.sleep(0.2)


def unresolved(path: Path) -> set[str]:
    """Return the names of alerts whose last notice says firing, for any of their label sets."""
    last: dict[tuple[tuple[str, str], ...], Notice] = {}
    for notice in read(path):
        last[tuple(sorted(notice.labels.items()))] = notice
    return {n.alert for n in last.values() if n.status == "firing"}
