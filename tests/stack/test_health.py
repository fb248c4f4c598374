"""What Prometheus says -> the state of each engine: `up` only for one that does its work."""

import pytest

from inferwatch.promapi import Prometheus, Sample
from inferwatch.stack import health
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection, State


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"llm_probe_success": 1.0}, "up"),
        ({"llm_probe_success": 1.0, "inferwatch:instance_stuck_requests:sum > 0": 3.0}, "hangs"),
        ({"llm_probe_success": 1.0, "llm_engine_sleeping > 0": 1.0}, "asleep"),
        ({"llm_probe_success": 0.0, "inferwatch:instance_stuck_requests:sum > 0": 3.0}, "down (refused)"),
        ({}, "unknown"),
    ],
)
def test_only_an_engine_that_works_is_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, answers: dict[str, float], expected: str
) -> None:
    """A hanging engine's probe still succeeds; down wins over what was true before; no answer is unknown."""
    labels = {"instance": "http://e:1", "reason": "refused"}

    def query(self: Prometheus, expr: str, *, at: float | None = None) -> list[Sample]:
        known = answers | ({"llm_probe_failure == 1": 1.0} if answers.get("llm_probe_success") == 0 else {})
        return [Sample(labels, timestamp=0.0, value=known[expr])] if expr in known else []

    monkeypatch.setattr(Prometheus, "query", query)
    (found,) = health.engines(settings, State(1, Selection("urls", ("http://e:1",), "llm"), {}))

    assert found.state == expected
