"""Prometheus' answers become windows; what is not known is not guessed."""

import math
from typing import Any

from exporters.analysis.history import Moment, read
from inferwatch.promapi import Series

WHO = {"service": "llm", "model": "m"}


class Told:
    """Answers by a word in the query."""

    def __init__(self, **answers: list[tuple[float, float]]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, float, float, float]] = []

    def query_range(self, expr: str, *, start: float, end: float, step_seconds: float) -> list[Series]:
        """The series of the first word that the query holds."""
        self.asked.append((expr, start, end, step_seconds))
        for word, points in self.answers.items():
            if word in expr:
                return [Series(WHO, tuple(points))]
        return []


def test_windows_are_put_together_by_time() -> None:
    """At 60 s all is known; at 120 s nobody asked; at 180 s a promise was broken and no prompt finished."""
    told = Told(
        requests_running=[(60, 3.0), (120, 0.0), (180, 9.0)],
        instance_requests=[(60, 2.0), (120, 0.0), (180, 5.0)],
        sli_bad_events=[(60, 0.0), (120, 0.0), (180, 1.0)],
        prompt_tokens_sum=[(60, 256.0), (180, math.nan)],
        prefix_cache=[(60, 0.8)],
        latency_seconds=[(60, 0.7), (180, 2.5)],
    )
    found = read(told, end=185, lookback_seconds=180, window_seconds=60)  # type: ignore[arg-type] # only query_range
    assert found == {
        ("llm", "m"): [
            Moment(3.0, 2.0, True, 256.0, 0.8, 0.7),
            Moment(9.0, 5.0, False, None, None, 2.5),
        ]
    }


def test_windows_lie_side_by_side() -> None:
    """The last whole minute, as many minutes as the lookback has, one step each."""
    told = Told()
    assert read(told, end=1000, lookback_seconds=600, window_seconds=60) == {}  # type: ignore[arg-type] # only query_range
    for expr, start, end, step in told.asked:
        assert (start, end, step) == (420, 960, 60), expr


def test_a_window_that_nobody_judged_is_left_out() -> None:
    """Requests, but no SLO recorded: neither kept nor broken."""
    told: Any = Told(requests_running=[(60, 3.0)], instance_requests=[(60, 2.0)])
    assert read(told, end=60, lookback_seconds=60, window_seconds=60) == {("llm", "m"): []}
