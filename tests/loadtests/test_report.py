"""Summaries against arithmetic on a handful of records, and the coordinated-omission case."""

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from loadtests.compare import column
from loadtests.plan import LoadPlan, closed, open_loop, parse_plan
from loadtests.records import RequestRecord, from_mapping
from loadtests.report import client_health, distribution, summarise, table
from loadtests.run import LoadResult
from slo.delivery import LoadClient

LIMITS = LoadClient(max_cpu_ratio=0.7, max_lag_seconds=0.05)


def _record(at: float, **changes: Any) -> RequestRecord:
    """Scheduled and sent at *at*, first token after 0.1 s, last and end after 0.5 s, 5 tokens in 2 chunks."""
    values: dict[str, Any] = {field.name: None for field in dataclasses.fields(RequestRecord)}
    values |= {
        "worker": 0,
        "seq": int(at * 10),
        "attempt": 0,
        "endpoint": "chat",
        "stream": True,
        "trace_id": "t",
    }
    values |= {
        "scheduled_s": at,
        "started_s": at,
        "sent_s": at,
        "first_byte_s": at,
        "first_token_s": at + 0.1,
    }
    values |= {
        "last_token_s": at + 0.5,
        "end_s": at + 0.5,
        "wall_offset_s": 0.0,
        "clock": "kernel",
        "outcome": "ok",
    }
    values |= {
        "done_seen": True,
        "will_retry": False,
        "output_tokens": 5,
        "tokens_source": "server",
        "chunks": 2,
    }
    values |= {"bytes_in": 1, "chunk_gaps_ns": (400_000_000,), "prompt_tokens": 3}
    return from_mapping({**values, **changes})


def _result(records: list[RequestRecord], plan: LoadPlan | None = None) -> LoadResult:
    plan = plan or parse_plan({"base_url": "http://h:1", "model": "m", "arrival": open_loop(1, 4)})
    result = LoadResult(Path("x"), plan, 0.0, 9.0, 0, False)
    result.__dict__.update(records=tuple(records), health=())
    return result


def test_counts_rates_and_percentiles() -> None:
    """Four requests a second apart in 4 s: 1/s due and sent; 3 good, 1 failed; 15 tokens in 2.5 s."""
    failed = _record(3, outcome="error", error_kind="stream_error", error_type="Boom", output_tokens=2)
    summary = summarise(_result([_record(0), _record(1), _record(2), failed]), LIMITS)

    assert summary["requests"] == {"total": 4, "ok": 3, "error": 1, "aborted": 0, "unfinished": 0}
    assert (summary["error_ratio"], summary["errors"]) == (0.25, {"stream_error:Boom": 1})
    assert (summary["rates"]["target_per_s"], summary["rates"]["sent_per_s"]) == (1.0, 1.0)
    assert summary["rates"]["output_tokens_per_s"] == pytest.approx(15 / 2.5)
    assert summary["latency"]["ttft_s"]["count"] == 3
    assert summary["latency"]["ttft_s"]["p99.9"] == pytest.approx(0.1)
    assert summary["latency"]["tpot_s"]["p50"] == pytest.approx(0.1)
    assert summary["latency"]["inter_chunk_gap_s"]["max"] == pytest.approx(0.4)
    assert summary["tokens"] == {
        "prompt": 9,
        "output": 15,
        "cached": None,
        "wasted_output": 2,
        "answers_counted_by_server": 3,
        "answers_estimated": 0,
    }
    json.dumps(summary, allow_nan=False)


def test_an_answer_without_an_end_is_a_failed_one() -> None:
    """As the gate counts: one error and one without an end are two of four; a stopped run judges one of three."""
    records = [
        _record(0),
        _record(1),
        _record(2, outcome="error", error_kind="http", status=500),
        _record(3, outcome="unfinished", last_token_s=None),
        _record(3.5, outcome="aborted"),
    ]
    whole = _result(records)
    stopped = dataclasses.replace(whole, stopped=True)
    stopped.__dict__.update(records=whole.records, health=())

    summary = summarise(whole, LIMITS)
    assert summary["error_ratio"] == 0.5
    counts = summary["groups"]["endpoint"]["chat"]
    assert (counts["requests"], counts["errors"], counts["unfinished"]) == (5, 1, 1)
    assert summarise(stopped, LIMITS)["error_ratio"] == pytest.approx(1 / 3)
    assert column("one", [whole]).figures["error_ratio"].value == 0.5
    assert column("both", [whole, stopped]).figures["error_ratio"].value == pytest.approx(3 / 7)


def test_nothing_known_is_none_not_zero() -> None:
    """A run without one good answer has no latency, no rate of good answers and no client state."""
    summary = summarise(_result([]), LIMITS)

    assert summary["error_ratio"] is None
    assert set(summary["latency"].values()) == {None}
    assert set(summary["rates"].values()) == {None}
    assert set(summary["client"].values()) == {None}
    assert "–" in _printed(summary)


def test_tokens_that_nobody_told_are_not_zero() -> None:
    """Three good answers without usage, of a server that reports none: no count, and no rate of tokens."""
    mute = [
        _record(at, prompt_tokens=None, output_tokens=None, cached_tokens=None, tokens_source=None)
        for at in range(3)
    ]
    summary = summarise(_result(mute), LIMITS)

    assert {summary["tokens"][key] for key in ("prompt", "output", "cached", "wasted_output")} == {None}
    assert summary["rates"]["output_tokens_per_s"] is None
    assert summary["rates"]["good_per_s"] == pytest.approx(3 / 2.5)


def test_back_off_is_part_of_what_a_user_waited() -> None:
    """Refused at 0 s, answered from 5.0 to 5.5 s: the user waited 5.5 s, though the second try was quick."""
    first = _record(0, outcome="error", error_kind="http_503", will_retry=True)
    second = _record(0, attempt=1, started_s=5.0, sent_s=5.0, first_token_s=5.1, last_token_s=5.5, end_s=5.5)
    latency = summarise(_result([first, second]), LIMITS)["latency"]

    assert latency["latency_from_schedule_s"]["max"] == pytest.approx(5.5)
    assert latency["e2e_s"]["max"] == pytest.approx(0.5)


def test_connecting_is_not_the_lateness_of_the_client() -> None:
    """Begun at once, 4 s to connect: the schedule was kept; a server that takes no connection was tried on time."""
    slow = [_record(at, connected_s=at + 4.0, sent_s=at + 4.0, end_s=at + 5.0) for at in range(4)]
    refused = [
        _record(at, sent_s=None, outcome="error", error_kind="connect_refused", end_s=float(at))
        for at in range(4)
    ]
    summary = summarise(_result(slow), LIMITS)

    assert summary["schedule_delay_s"]["max"] == 0
    assert summary["latency"]["connect_s"]["p50"] == 4.0
    assert summarise(_result(refused), LIMITS)["rates"]["sent_per_s"] == 1.0


def test_retried_attempts_are_not_requests() -> None:
    """An attempt that was tried again is a retry; the request counts by its last attempt."""
    first = _record(0, outcome="error", error_kind="http_503", will_retry=True)
    second = _record(0.5, attempt=1)
    summary = summarise(_result([first, second]), LIMITS)

    assert (summary["requests"]["total"], summary["requests"]["ok"], summary["retries"]) == (1, 1, 1)
    assert (summary["errors"], summary["attempt_errors"]) == ({}, {"http_503": 1})


def test_a_late_client_is_seen_in_the_rate() -> None:
    """Four requests due in 4 s and sent in 8: half of the rate, and the delays tell."""
    records = [_record(at, sent_s=2.0 * at + 2) for at in (0, 1, 2, 3)]
    summary = summarise(_result(records), LIMITS)

    assert summary["rates"]["sent_per_s"] == pytest.approx(0.5)
    assert summary["schedule_delay_s"]["max"] == pytest.approx(5.0)


def test_requests_cut_off_are_not_forgotten() -> None:
    """Ten answered in 0.5 s, ten cut after 9 s without a token: P95 of both latencies is unknown, not 0.5 s."""
    cut = {"outcome": "unfinished", "first_token_s": None, "last_token_s": None}
    records = [_record(i) for i in range(10)] + [_record(i, end_s=i + 9.0, **cut) for i in range(10)]
    latency = summarise(_result(records), LIMITS)["latency"]

    assert (latency["e2e_s"]["p50"], latency["e2e_s"]["p95"]) == (pytest.approx(0.5), None)
    assert (latency["ttft_s"]["cut"], latency["ttft_s"]["p95"], latency["ttft_s"]["mean"]) == (10, None, None)


def test_groups() -> None:
    """Each label has its own counts."""
    records = [_record(0, lane="urgent"), _record(1, lane="batch", outcome="error", error_kind="reset")]
    groups = summarise(_result(records), LIMITS)["groups"]

    assert {name: (g["requests"], g["errors"]) for name, g in groups["lane"].items()} == {
        "urgent": (1, 0),
        "batch": (1, 1),
    }
    assert groups["tenant"] == {}


@pytest.mark.parametrize(
    ("cpu", "lag", "saturated"), [(0.5, 0.001, False), (0.8, 0.001, True), (0.5, 0.2, True)]
)
def test_saturated_client(cpu: float, lag: float, saturated: bool) -> None:
    """Over 70 % of a core, or an event loop 50 ms late, the client measures itself."""
    samples = [{"cpu_ratio": cpu, "lag_s": [lag] * 20, "seconds": 1.0}]

    assert client_health(samples, LIMITS)["saturated"] is saturated


def test_a_pulse_does_not_drown_among_idle_seconds() -> None:
    """Ten minutes with 2 s of 60 at a full core: 3 % of the time and all of the requests."""
    pulse = {"cpu_ratio": 1.0, "lag_s": [0.001], "seconds": 1.0, "due_per_s": 80.0}
    idle = {"cpu_ratio": 0.05, "lag_s": [0.001], "seconds": 1.0, "due_per_s": 0.0}
    samples = ([pulse] * 2 + [idle] * 58) * 10
    health = client_health(samples, LIMITS)

    assert (health["cpu_ratio"]["p95"], health["cpu_ratio_at_requests_p95"]) == (0.05, 1.0)
    assert health["saturated"] is True
    assert client_health([idle] * 600, LIMITS)["saturated"] is False


def test_one_saturated_worker_of_many_is_seen() -> None:
    """Of 40 workers one is at 100 %: 2.5 % of all samples, under every pooled P95; an unsampled one is unknown."""
    calm = [{"worker": n, "cpu_ratio": 0.1, "lag_s": [0.001], "seconds": 1.0} for n in range(39)]
    hot = {"worker": 39, "cpu_ratio": 1.0, "lag_s": [0.001], "seconds": 1.0}
    brief = {"worker": 39, "cpu_ratio": 0.1, "lag_s": [], "seconds": 0.1}

    assert client_health([*calm, hot], LIMITS)["saturated"] is True
    assert client_health([*calm, hot], LIMITS)["cpu_ratio"]["p95"] == 1.0
    assert client_health([*calm, brief], LIMITS)["saturated"] is None
    assert client_health(calm, LIMITS)["saturated"] is False


def test_distribution_by_hand() -> None:
    """1..100: mean 50.5, P95 95, P99.9 100; unknown samples are left out."""
    figures = distribution([*map(float, range(100, 0, -1)), None])

    assert figures == {
        "count": 100, "cut": 0, "mean": 50.5, "p50": 50, "p95": 95, "p99": 99, "p99.9": 100, "max": 100
    }  # fmt: skip


def test_a61_coordinated_omission(streams: Path) -> None:
    """A61: measured from the schedule, a 6 s freeze of 10 s shows as a P95 over 5 s, never as 10 ms."""
    plan = json.loads((streams / "A61/plan.json").read_text(encoding="utf-8"))
    expected = json.loads((streams / "A61/expected.json").read_text(encoding="utf-8"))
    service, thaw = plan["service_ms"] / 1e3, plan["freeze_to_ms"] / 1e3
    frozen_from = plan["freeze_from_ms"] / 1e3
    due = [step * plan["planned_interval_ms"] / 1e3 for step in range(100) for _ in range(plan["users"])]
    records = []
    for at in due:
        end = (thaw if frozen_from <= at < thaw else at) + service
        records.append(_record(at, first_token_s=end, last_token_s=end, end_s=end, chunks=1))
    open_plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": open_loop(100, 10)})
    summary = summarise(_result(records, open_plan), LIMITS)

    assert summary["requests"]["total"] == expected["planned"]
    assert summary["latency"]["latency_from_schedule_s"]["p95"] > 5
    assert summary["latency"]["latency_from_schedule_s"]["p50"] >= 1
    assert sum((r.latency_from_schedule_s or 0) > 0.05 for r in records) == expected["delayed_if_open_loop"]


def test_a61_closed_loop_shows_no_target() -> None:
    """A closed loop has no planned rate to be held to, and says so instead of a flattering number."""
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": closed(10, 10)})
    summary = summarise(_result([_record(0), _record(1)], plan), LIMITS)

    assert summary["rates"]["target_per_s"] is None
    assert "target –/s" in _printed(summary)


def _printed(summary: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=160)
    console.print(table(summary))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
