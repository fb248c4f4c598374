"""Delivered webhooks as notices."""

import json
from pathlib import Path

from inferwatch.loop.notices import first, read, unresolved, wait_for_any


def deliver(path: Path, at: float, status: str, *names: str, group: str = "g") -> None:
    """Append one webhook as the receiver writes it."""
    alerts = [
        {"status": status, "labels": {"alertname": n}, "annotations": {"summary": f"{n} now"}} for n in names
    ]
    with path.open("a", encoding="utf-8") as lines:
        lines.write(
            json.dumps({"received_at": at, "status": status, "groupKey": group, "alerts": alerts}) + "\n"
        )


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


def test_a_group_that_is_over_ends_what_it_does_not_name(tmp_path: Path) -> None:
    """
    As delivered by two real Alertmanagers, one of them just started again: the first had told of Degraded, the new
    one knew of the broken rule only and called the group resolved; Degraded's own end was never sent.
    """
    path = tmp_path / "n.jsonl"
    deliver(path, 1.0, "firing", "Degraded", "RuleBroken")
    deliver(path, 2.0, "firing", "Elsewhere", group="another")
    deliver(path, 31.0, "resolved", "RuleBroken")

    ends = [(n.alert, n.received_at, n.implied) for n in read(path) if n.status == "resolved"]

    assert ends == [("RuleBroken", 31.0, False), ("Degraded", 31.0, True)]
    assert unresolved(path) == {"Elsewhere"}


def test_what_was_told_to_be_over_ends_once(tmp_path: Path) -> None:
    """Named as resolved while others of its group fired: the end of the group adds nothing to it."""
    path = tmp_path / "n.jsonl"
    deliver(path, 1.0, "firing", "A", "B")
    with path.open("a", encoding="utf-8") as lines:
        mixed = [{"status": s, "labels": {"alertname": n}} for n, s in (("A", "resolved"), ("B", "firing"))]
        lines.write(
            json.dumps({"received_at": 2.0, "status": "firing", "groupKey": "g", "alerts": mixed}) + "\n"
        )
    deliver(path, 3.0, "resolved", "B")

    assert [(n.alert, n.received_at) for n in read(path) if n.status == "resolved"] == [
        ("A", 2.0),
        ("B", 3.0),
    ]
