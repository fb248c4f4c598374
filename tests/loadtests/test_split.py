"""Where the time went: client records against a stand-in of Prometheus with known answers."""

import dataclasses
from pathlib import Path
from typing import Any, cast

import pytest

from inferwatch.promapi.prometheus import Prometheus
from loadtests.plan import closed, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.run import LoadResult
from loadtests.split import split


class _Known:
    """Answers queries by the family named in them, and keeps what it was asked."""

    def __init__(self, means: dict[str, float], count: float | None) -> None:
        self._means, self._count = means, count
        self.asked: list[tuple[str, float | None]] = []

    def value(self, expr: str, *, at: float | None = None) -> float | None:
        self.asked.append((expr, at))
        if " / " not in expr:
            return self._count
        return next((mean for name, mean in self._means.items() if f"{name}_sum" in expr), None)


def _result(count: int) -> LoadResult:
    """Requests of 1 s, the first with a connection that took 0.2 s to open."""
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(1, 9)})
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
    values |= {
        "outcome": "ok",
        "started_s": 5.0,
        "sent_s": 5.2,
        "end_s": 6.2,
        "scheduled_s": 5.0,
        "chunk_gaps_ns": (),
    }
    values["wall_offset_s"] = 1000.0
    records = [from_mapping({**values, "connected_s": 5.2 if n == 0 else None}) for n in range(count)]
    result = LoadResult(Path("x"), plan, 1004.0, 1010.0, 0, False)
    result.__dict__["records"] = tuple(records)
    return result


def test_the_parts_by_subtraction() -> None:
    """Client 1 s, server 0.9 s: 0.1 s network and serialisation; connect 0.2 s over four requests is 0.05 s."""
    known = _Known({"request_duration_seconds": 0.9, "request_queue_seconds": 0.3,
                    "request_prefill_seconds": 0.1, "request_decode_seconds": 0.5}, 4.04)  # fmt: skip
    found = split(_result(4), cast(Prometheus, known), 'service="llm"')

    assert found.network_s == pytest.approx(0.1)
    assert found.connect_s == pytest.approx(0.05)
    assert (found.queue_s, found.prefill_s, found.decode_s) == (0.3, 0.1, 0.5)
    assert found.same_requests
    assert all('{service="llm"}' in expr for expr, _ in known.asked)
    assert all(at == pytest.approx(1006.2 + 15) for _, at in known.asked)


def test_what_the_engine_does_not_tell_is_unknown() -> None:
    """An engine without these histograms has no split; other traffic is noticed."""
    absent = split(_result(4), cast(Prometheus, _Known({}, None)), "")
    busy = split(_result(4), cast(Prometheus, _Known({"request_duration_seconds": 0.9}, 8.0)), "")

    assert (absent.network_s, absent.queue_s, absent.same_requests) == (None, None, None)
    assert busy.same_requests is False
    assert busy.queue_s is None


def test_a_run_without_answers_has_no_parts() -> None:
    """No successful request, no client mean."""
    found = split(_result(0), cast(Prometheus, _Known({"request_duration_seconds": 0.9}, 0.0)), "")

    assert (found.connect_s, found.network_s, found.client_e2e_s) == (None, None, None)
