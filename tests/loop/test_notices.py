"""Delivered webhooks as notices."""

import json
from pathlib import Path

from inferwatch.loop.notices import first, read, unresolved, wait_for_any


def deliver(path: Path, at: float, status: str, *names: str) -> None:
    """Append one webhook as the receiver writes it."""
    alerts = [
        {"status": status, "labels": {"alertname": n}, "annotations": {"summary": f"{n} now"}} for n in names
    ]
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps({"received_at": at, "alerts": alerts}) + "\n")


def test_first_notice_after_the_fault(tmp_path: Path) -> None:
    """A notice from before the fault is not the answer to it."""
    path = tmp_path / "n.jsonl"
    deliver(path, 100.0, "firing", "EngineDown")
    deliver(path, 200.0, "firing", "EngineDown", "Other")

    found = first(path, ("EngineDown", "ServiceDown"), "firing", since=150.0)

    assert found is not None
    assert (found.received_at, found.summary) == (200.0, "EngineDown now")
    assert len(read(path)) == 3


def test_none_after_the_timeout(tmp_path: Path) -> None:
    """No file yet is no notice, not an error."""
    assert wait_for_any(tmp_path / "none", ("A",), "firing", 0, 0.3) is None


def test_unresolved_are_those_whose_last_word_is_firing(tmp_path: Path) -> None:
    """Fired and resolved is done; fired again is not."""
    path = tmp_path / "n.jsonl"
    deliver(path, 1.0, "firing", "A", "B")
    deliver(path, 2.0, "resolved", "A", "B")
    deliver(path, 3.0, "firing", "B")

    assert unresolved(path) == {"B"}
