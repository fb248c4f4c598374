"""Spans of real engines and spans that failed other people, through the real collector into metrics."""

import json
from pathlib import Path

import pytest

from inferwatch.collector import lint

from . import otlp

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "collector"
FLUSH = 15.0
CALLS = "traces_span_metrics_calls_total"
DURATION = "traces_span_metrics_duration_seconds"


def case_spans(name: str) -> otlp.Json:
    """A case's request."""
    body: otlp.Json = json.loads((CASES / name / "spans.json").read_text())
    return body


def test_recorded_vllm_spans_become_stages(tmp_path: Path) -> None:
    """12 recorded llm_request spans: sums of each stage by hand from the file; the model is the caller's, or missing."""
    recorded = [json.loads(line) for line in (CASES / "vllm-llm-request.jsonl").read_text().splitlines()]
    named = {"gen_ai.request.model": "tiny"}
    with otlp.collector(tmp_path) as collector:
        for at, one in enumerate(recorded):
            span = otlp.span(
                one["name"],
                trace=one["trace_id"],
                parent=one["parent_span_id"],
                more=one["attributes"],
                traceState="inferwatch=tiny" if at % 3 == 0 else one["trace_state"],
            )
            resource = {**one["resource"], **(named if at % 3 == 1 else {})}
            service = str(resource.pop("service.name"))
            collector.send(span, service=service, **resource)
        count = "llm_span_stage_seconds_count"
        otlp.until(lambda: collector.sample(count, stage="e2e") == len(recorded), FLUSH, "all were counted")
        for stage, attribute in (
            ("queue", "time_in_queue"), ("prefill", "time_in_model_prefill"), ("decode", "time_in_model_decode"),
            ("ttft", "time_to_first_token"), ("e2e", "e2e"),
        ):  # fmt: skip
            by_hand = sum(one["attributes"][f"gen_ai.latency.{attribute}"] for one in recorded)
            assert collector.sample("llm_span_stage_seconds_sum", stage=stage) == pytest.approx(by_hand), (
                stage
            )
        assert collector.sample(count, stage="queue", model="tiny") == 8
        assert collector.sample(count, stage="queue", model="unknown") == 4
        assert collector.sample("llm_span_missing_total", field="model") == 4
        assert collector.sample("llm_span_missing_total", field="status") == 12
        assert collector.sample("llm_span_missing_total", field="finish_reason") == 12
        roots = sum(not one["parent_span_id"] for one in recorded)
        assert collector.sample("llm_span_missing_total", field="parent") == roots
        tokens = sum(one["attributes"]["gen_ai.usage.prompt_tokens"] for one in recorded)
        assert collector.sample("gen_ai_span_tokens_total", type="input") == tokens
        otlp.until(lambda: len(collector.written()) == 12, 30, "all were written")
        assert {one["resource"]["service.name"] for one in collector.written()} == {"vllm"}


def test_names_are_pinned(tmp_path: Path) -> None:
    """A49: 5 errors of 100 are 0.05 by names that we chose, in seconds, whatever the release calls them."""
    with otlp.collector(tmp_path) as collector:
        collector.send(*(otlp.span("chat", seconds=0.05) for _ in range(90)))
        collector.send(*(otlp.span("chat", seconds=0.365) for _ in range(5)))
        collector.send(*(otlp.span("chat", seconds=0.365, status=otlp.ERROR) for _ in range(5)))
        otlp.until(lambda: collector.sample(CALLS) == 100, FLUSH, "all were counted")

        assert collector.sample(CALLS, status_code="STATUS_CODE_ERROR") / collector.sample(CALLS) == 0.05
        assert collector.sample(f"{DURATION}_bucket", le="0.1") == 90
        assert collector.sample(f"{DURATION}_sum") / 100 == pytest.approx(0.0815, abs=1e-4)
        assert 'job="' not in collector.metrics()
        assert 'instance="' not in collector.metrics()


def test_a_span_that_ends_before_it_begins_has_no_duration(tmp_path: Path) -> None:
    """A50: 120 ms, 0, 0 and 27 h; one is counted as invalid and none lasts for centuries."""
    wanted = json.loads((CASES / "A50-negative-span-duration" / "expected.json").read_text())
    with otlp.collector(tmp_path) as collector:
        assert otlp.post(collector.http, "traces", case_spans("A50-negative-span-duration")) == 200
        otlp.until(lambda: collector.sample(CALLS) == 4, FLUSH, "all were counted")
        otlp.until(lambda: len(collector.written()) == 4, 30, "the whole trace was kept")

        assert collector.sample(f"{DURATION}_sum") == pytest.approx(0.120 + 0 + 0 + 97200)
        assert collector.sample("llm_span_invalid_time_total") == wanted["invalid"]
        lasted = {
            one["name"]: (int(one["endTimeUnixNano"]) - int(one["startTimeUnixNano"])) / 1e6
            for one in collector.written()
        }
    assert lasted == {"chat": 120, "healthz": 0, "started_never": 0, "long_job_27h": 97200000}


def test_ids_in_names_make_one_series(tmp_path: Path) -> None:
    """A51: 40 documents are one series of 40 calls, and one name in the traces."""
    with otlp.collector(tmp_path) as collector:
        assert otlp.post(collector.http, "traces", case_spans("A51-span-name-cardinality")) == 200
        otlp.until(lambda: collector.sample(CALLS) == 40, FLUSH, "all were counted")
        series = [line for line in collector.metrics().splitlines() if line.startswith(f"{CALLS}{{")]
        otlp.until(lambda: len(collector.written()) == 40, 30, "all were kept")

        assert len(series) == 1
        assert collector.names() == {"GET /docs/{id}"}


def test_models_without_end_overflow_and_the_total_stays(tmp_path: Path) -> None:
    """A51: 2100 names of models that a client invents end in one overflow series at the limit of 2000."""
    with otlp.collector(tmp_path) as collector:
        for start in range(0, 2100, 300):
            collector.send(
                *(
                    otlp.span("chat", more={"gen_ai.request.model": f"m{n}"})
                    for n in range(start, start + 300)
                )
            )
        otlp.until(lambda: collector.sample(CALLS) == 2100, FLUSH, "all were counted")
        series = [line for line in collector.metrics().splitlines() if line.startswith(f"{CALLS}{{")]

        assert len(series) <= 2001
        assert collector.sample(CALLS, otel_metric_overflow="true") >= 99


def test_tokens_are_counted_once_whatever_they_are_called(tmp_path: Path) -> None:
    """A73: the same call in old, new and both spellings is 300 tokens in and 30 out for vllm, not 400 and 40."""
    wanted = json.loads((CASES / "A73-genai-attribute-names-changed" / "expected.json").read_text())
    with otlp.collector(tmp_path) as collector:
        assert otlp.post(collector.http, "traces", case_spans("A73-genai-attribute-names-changed")) == 200
        tokens = "gen_ai_span_tokens_total"
        otlp.until(
            lambda: collector.sample(tokens, type="output") == wanted["output"], FLUSH, "30 tokens out"
        )

        assert collector.sample(tokens, type="input", gen_ai_provider_name="vllm") == wanted["input"]
        assert collector.sample(tokens) == wanted["input"] + wanted["output"]


def test_streams_are_as_long_as_they_were(tmp_path: Path) -> None:
    """A53: 2310, 901 and 500 ms are what the histogram sees; the failed one is an error, the abandoned one is marked."""
    with otlp.collector(tmp_path) as collector:
        collector.send(
            otlp.span("chat", seconds=2.310, more={"gen_ai.usage.output_tokens": 101}),
            otlp.span("chat", seconds=0.901, status=otlp.ERROR),
            otlp.span("chat", seconds=0.500, more={"inferwatch.abandoned": True}),
        )
        otlp.until(lambda: collector.sample(CALLS) == 3, FLUSH, "all were counted")
        otlp.until(lambda: len(collector.written()) == 3, 30, "all were kept")

        assert collector.sample(f"{DURATION}_sum") == pytest.approx(3.711)
        assert collector.sample(f"{DURATION}_bucket", le="0.1") == 0
        marks = [one["attributes"].get("inferwatch.abandoned") for one in collector.written()]
    assert sorted(marks, key=str) == [None, None, True]


def test_a_receiver_is_reached_from_another_address_only_with_its_host_set(tmp_path: Path) -> None:
    """A52: with INFERWATCH_OTLP_HOST=0.0.0.0 a span sent to another address of this machine is found."""
    assert lint.faults(otlp.CONFIG.read_text(), {"INFERWATCH_OTLP_HOST": "0.0.0.0"}, container=True) == []
    with otlp.collector(tmp_path, INFERWATCH_OTLP_HOST="127.0.0.2") as collector:
        body = json.dumps(otlp.traces([otlp.span("from elsewhere")])).encode()
        import urllib.request

        request = urllib.request.Request(
            f"http://127.0.0.2:{collector.http}/v1/traces", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200
        otlp.until(lambda: collector.names() == {"from elsewhere"}, 30, "the span was found")


def test_numbers_that_are_none_neither_poison_a_sum_nor_end_the_collector(tmp_path: Path) -> None:
    """
    One sender writes 10 tokens as an integer, another 2.0 as a float, in one batch: 12, and the collector lives.

    NaN, infinite, negative, vast and textual ones are left out of the sums for good; 0.25 s of queue and 1 s stay.
    """
    model = {"gen_ai.request.model": "tiny"}
    tokens, queue = "gen_ai.usage.input_tokens", "gen_ai.latency.time_in_queue"
    good = [
        otlp.span("llm_request", more={**model, tokens: 10, queue: 0.25}),
        otlp.span("llm_request", more={**model, tokens: 2.0, queue: 1}),
    ]
    bad = []
    for number in ("NaN", "Infinity", "-Infinity", -5.0, 1e300):
        one = otlp.span("llm_request", more=model)
        one["attributes"] += [{"key": key, "value": {"doubleValue": number}} for key in (tokens, queue)]
        bad.append(one)
    bad.append(otlp.span("llm_request", more={**model, tokens: -1000, queue: -3}))
    bad.append(otlp.span("llm_request", more={**model, tokens: "many", queue: "long"}))
    with otlp.collector(tmp_path) as collector:
        collector.send(*bad, *good, *bad)
        otlp.until(lambda: collector.sample(CALLS) == 2 + 2 * 7, FLUSH, "all were counted")
        otlp.until(lambda: collector.sample("gen_ai_span_tokens_total", type="input") > 0, FLUSH, "a sum")

        assert collector.sample("gen_ai_span_tokens_total", type="input") == 12
        assert collector.sample("llm_span_stage_seconds_sum", stage="queue") == 1.25
        assert collector.sample("llm_span_stage_seconds_count", stage="queue") == 2
