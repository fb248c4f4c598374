"""Live series of a run, read off its growing files as a scraper sees them."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from loadtests.live import LiveRun
from loadtests.plan import open_loop, parse_plan
from loadtests.records import RequestRecord, to_line


def _record(**changes: Any) -> RequestRecord:
    now = time.monotonic()
    values: dict[str, Any] = dict.fromkeys(RequestRecord.__dataclass_fields__)
    values |= {"worker": 0, "seq": 0, "attempt": 0, "endpoint": "chat", "stream": True, "trace_id": "t"}
    values |= {"scheduled_s": now - 2, "started_s": now - 2, "sent_s": now - 1.75, "first_byte_s": now - 1.5}
    values |= {"first_token_s": now - 1.25, "last_token_s": now - 1, "end_s": now - 1, "wall_offset_s": 0.0}
    values |= {"clock": "kernel", "outcome": "ok", "done_seen": True, "will_retry": False, "output_tokens": 3}
    values |= {"tokens_source": "server", "chunks": 2, "bytes_in": 1, "chunk_gaps_ns": (250_000_000,)}
    return RequestRecord(**{**values, **changes})


@pytest.fixture
def run(tmp_path: Path) -> tuple[CollectorRegistry, Path]:
    """A registry over a run that wants 5 requests a second and began now, and its folder."""
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": open_loop(5, 60)})
    registry = CollectorRegistry()
    registry.register(LiveRun(plan, tmp_path, time.time()))
    return registry, tmp_path


def test_before_the_first_answer_nothing_is_zero(run: tuple[CollectorRegistry, Path]) -> None:
    """Only what is known is exposed: the run; no latency, no error ratio, and no target, as its time zero is not."""
    registry, folder = run

    assert registry.get_sample_value("llm_load_target_requests_per_second") is None
    labels = {"run": folder.name, "model": "m", "arrival": "open"}
    assert registry.get_sample_value("llm_load_run_info", labels) == 1
    assert registry.get_sample_value("llm_load_error_ratio") is None
    ttft = {"measure": "ttft", "quantile": "0.5"}
    assert registry.get_sample_value("llm_load_latency_seconds", ttft) is None
    assert registry.get_sample_value("llm_load_client_cpu_ratio", {"worker": "0"}) is None


def test_counts_latency_and_client(run: tuple[CollectorRegistry, Path]) -> None:
    """Two good answers and a failure, appended in two steps with a torn line between."""
    registry, folder = run
    value = registry.get_sample_value
    path = folder / "records-0.jsonl"
    second = to_line(_record(outcome="error", error_kind="reset", output_tokens=1))
    path.write_text(to_line(_record(tenant="a")) + second[:40], encoding="utf-8")
    assert value("llm_load_output_tokens_total") == 3
    path.write_text(path.read_text(encoding="utf-8") + second[40:] + to_line(_record()), encoding="utf-8")
    _sample(folder, 1.0)

    good = {"endpoint": "chat", "tenant": "", "lane": "", "outcome": "ok"}
    assert value("llm_load_requests_total", good) == 1
    assert value("llm_load_requests_total", good | {"tenant": "a"}) == 1
    assert value("llm_load_errors_total", {"error": "reset"}) == 1
    assert value("llm_load_output_tokens_total") == 6
    assert value("llm_load_error_ratio") == pytest.approx(1 / 3)
    ttft = {"measure": "ttft", "quantile": "0.95"}
    assert value("llm_load_latency_seconds", ttft) == pytest.approx(0.5)
    assert value("llm_load_schedule_delay_seconds", {"quantile": "0.99"}) == pytest.approx(0.25)
    assert (value("llm_load_requests_in_flight"), value("llm_load_sent_requests_per_second")) == (7, 4.5)
    assert value("llm_load_client_event_loop_lag_seconds", {"worker": "0"}) == 0.004
    assert value("llm_load_target_requests_per_second") == 5


@pytest.mark.parametrize(("seconds_in", "ratio"), [(59, 1 / 2), (100, 2 / 3)])
def test_an_answer_without_an_end_fails_once_the_plan_is_over(
    run: tuple[CollectorRegistry, Path], seconds_in: float, ratio: float
) -> None:
    """One good, one failed, one cut, of a plan of 60 s: cut before its end, nobody knows what would have come of it."""
    registry, folder = run
    _sample(folder, seconds_in)
    ends = [_record(), _record(outcome="error", error_kind="reset"), _record(outcome="unfinished")]
    (folder / "records-0.jsonl").write_text("".join(map(to_line, ends)), encoding="utf-8")

    assert registry.get_sample_value("llm_load_error_ratio") == pytest.approx(ratio)


def _sample(folder: Path, seconds: float) -> None:
    """The client's first word on itself, *seconds* after time zero."""
    health = {"worker": 0, "cpu_ratio": 0.3, "lag_s": [0.001, 0.004], "in_flight": 7, "due_per_s": 4.5}
    health |= {"at_s": time.monotonic(), "wall_offset_s": time.time() - time.monotonic(), "seconds": seconds}
    (folder / "client-0.jsonl").write_text(json.dumps(health) + "\n", encoding="utf-8")


def _trace_run(folder: Path, **changes: Any) -> CollectorRegistry:
    """A replay, twice as fast, of three requests at a time every 2 s for 200 s."""
    rows = [
        {"timestamp": 2000 * step, "input_length": 9, "output_length": 9}
        for step in range(101)
        for _ in range(3)
    ]
    path = folder / "trace.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    arrival = {"kind": "trace", "trace_format": "mooncake", "trace_path": str(path), "speed": 2}
    registry = CollectorRegistry()
    plan = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": arrival, **changes})
    registry.register(LiveRun(plan, folder, time.time()))
    return registry


def test_a_trace_has_a_target_rate(tmp_path: Path) -> None:
    """20.1 s after the start, 45 requests were due in the last 15 s: 3 a second."""
    registry = _trace_run(tmp_path)
    before = generate_latest(registry).decode()
    _sample(tmp_path, 20.1)

    assert "target_requests" not in before
    assert "\nllm_load_target_requests_per_second 3.0\n" in generate_latest(registry).decode()


def test_a_trace_that_is_over_has_none(tmp_path: Path) -> None:
    """At twice the speed it ends after 100 s; with 30 requests wanted at most, after 10."""
    (tmp_path / "cut").mkdir()
    whole, cut = _trace_run(tmp_path), _trace_run(tmp_path / "cut", max_requests=30)
    _sample(tmp_path, 101)
    _sample(tmp_path / "cut", 20)

    for registry in (whole, cut):
        text = generate_latest(registry).decode()
        assert "llm_load_sent_requests_per_second 4.5" in text
        assert "target_requests" not in text


def test_old_answers_leave_the_window_but_not_the_totals(run: tuple[CollectorRegistry, Path]) -> None:
    """An answer of a minute ago counts in the totals and in no quantile."""
    registry, folder = run
    old = _record(end_s=time.monotonic() - 60)
    (folder / "records-0.jsonl").write_text(to_line(old), encoding="utf-8")

    assert registry.get_sample_value("llm_load_output_tokens_total") == 3
    ttft = {"measure": "ttft", "quantile": "0.5"}
    assert registry.get_sample_value("llm_load_latency_seconds", ttft) is None


def test_retried_attempts_are_retries_not_requests(run: tuple[CollectorRegistry, Path]) -> None:
    """An attempt that is tried again is counted as such only."""
    registry, folder = run
    again = _record(outcome="error", error_kind="http_503", will_retry=True)
    (folder / "records-0.jsonl").write_text(to_line(again), encoding="utf-8")

    assert registry.get_sample_value("llm_load_retries_total") == 1
    assert registry.get_sample_value("llm_load_errors_total", {"error": "http_503"}) is None


def test_scrapes_at_the_same_time_count_each_line_once(run: tuple[CollectorRegistry, Path]) -> None:
    """2000 answers and eight scrapers at once: 2000 requests, by whoever asks last."""
    registry, folder = run
    (folder / "records-0.jsonl").write_text(to_line(_record()) * 2000, encoding="utf-8")
    labels = {"endpoint": "chat", "tenant": "", "lane": "", "outcome": "ok"}
    with ThreadPoolExecutor(8) as scrapers:
        seen = list(
            scrapers.map(lambda _: registry.get_sample_value("llm_load_requests_total", labels), range(8))
        )

    assert seen == [2000] * 8


def test_back_off_is_not_the_lateness_of_the_client(run: tuple[CollectorRegistry, Path]) -> None:
    """One request 0.25 s late, and one that was tried again 4 s after it was due, on time."""
    registry, folder = run
    now = time.monotonic()
    again = _record(attempt=1, scheduled_s=now - 6, started_s=now - 2, sent_s=now - 2)
    (folder / "records-0.jsonl").write_text(to_line(_record()) + to_line(again), encoding="utf-8")
    late = registry.get_sample_value("llm_load_schedule_delay_seconds", {"quantile": "0.99"})

    assert late == pytest.approx(0.25)
