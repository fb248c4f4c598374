"""What a scraper of the canary sees."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from exporters.canary.series import CanaryCollector, Outcome, Record
from exporters.canary.targets import Target

TARGET = Target("127.0.0.1:8000", (("instance", "127.0.0.1:8000"), ("service", "llm")))
BASE = {"instance": "127.0.0.1:8000", "service": "llm"}


def exposed(record: Record) -> CollectorRegistry:
    """Return a registry that holds the record alone."""
    registry = CollectorRegistry()
    registry.register(CanaryCollector(lambda: {TARGET: record}))
    return registry


def new_record() -> Record:
    """A target that was never asked."""
    return Record(dict(TARGET.labels))


def test_every_result_is_there_at_zero_from_the_start() -> None:
    """A burst of failures right after a start is seen, since each counter had a 0 before (case A37)."""
    registry = exposed(new_record())
    for result, code in [
        ("ok", "200"), ("timeout", ""), ("refused", ""), ("http", "500"), ("http", "503"), ("http", "404"),
        ("http", "other"), ("error_in_stream", "200"), ("malformed", "200"), ("no_token", "200"),
        ("no_model", ""),
    ]:  # fmt: skip
        labels = BASE | {"result": result, "code": code}
        assert registry.get_sample_value("llm_canary_requests_total", labels) == 0, (result, code)


def test_success_is_absent_before_the_first_result() -> None:
    """Never asked is neither healthy nor sick."""
    registry = exposed(new_record())
    assert registry.get_sample_value("llm_canary_success", BASE) is None
    assert registry.get_sample_value("llm_canary_last_success_timestamp_seconds", BASE) is None
    assert registry.get_sample_value("llm_canary_in_flight", BASE) == 0
    assert registry.get_sample_value("llm_canary_backoff_seconds", BASE) == 0


def test_a_success_fills_both_histograms() -> None:
    """0.31 s is over the engine's 0.3 bound and under 0.5; a first token at 0.04 s is within le 0.04."""
    record = new_record()
    record.observe(Outcome("ok", 200, 0.31, 0.04), at=1000.5)
    registry = exposed(record)
    bucket = "llm_canary_request_duration_seconds_bucket"
    assert registry.get_sample_value(bucket, BASE | {"le": "0.3"}) == 0
    assert registry.get_sample_value(bucket, BASE | {"le": "0.5"}) == 1
    assert registry.get_sample_value(bucket, BASE | {"le": "+Inf"}) == 1
    assert registry.get_sample_value("llm_canary_request_duration_seconds_sum", BASE) == 0.31
    first = "llm_canary_time_to_first_token_seconds_bucket"
    assert registry.get_sample_value(first, BASE | {"le": "0.02"}) == 0
    assert registry.get_sample_value(first, BASE | {"le": "0.04"}) == 1
    assert registry.get_sample_value("llm_canary_success", BASE) == 1
    assert registry.get_sample_value("llm_canary_last_success_timestamp_seconds", BASE) == 1000.5


def test_a_failure_enters_no_histogram_and_keeps_the_last_success() -> None:
    """A fast failure must not make latency look better."""
    record = new_record()
    record.observe(Outcome("ok", 200, 0.1, 0.05), at=1000)
    record.observe(Outcome("http", 500), at=1010)
    record.observe(Outcome("http", 418), at=1020)
    registry = exposed(record)
    assert registry.get_sample_value("llm_canary_request_duration_seconds_count", BASE) == 1
    assert (
        registry.get_sample_value("llm_canary_requests_total", BASE | {"result": "http", "code": "500"}) == 1
    )
    assert (
        registry.get_sample_value("llm_canary_requests_total", BASE | {"result": "http", "code": "other"})
        == 1
    )
    assert registry.get_sample_value("llm_canary_success", BASE) == 0
    assert registry.get_sample_value("llm_canary_last_success_timestamp_seconds", BASE) == 1000
    assert record.failures_in_a_row == 2


def test_the_engines_own_bounds_are_all_there() -> None:
    """Canary requests can be taken out of the engine's histograms bucket by bucket."""
    text = generate_latest(exposed(new_record())).decode()
    bounds: dict[str, set[float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name.endswith("_bucket"):
                bounds.setdefault(family.name, set()).add(float(sample.labels["le"]))
    assert {0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 7680} <= bounds["llm_canary_request_duration_seconds"]
    assert min(bounds["llm_canary_request_duration_seconds"]) < 0.01
    assert {0.001, 0.1, 0.25, 0.5, 2560} <= bounds["llm_canary_time_to_first_token_seconds"]


def test_counts_survive_the_models_discovery_and_another_model_starts_at_zero() -> None:
    """What failed before the model was known stays counted; another model is another series."""
    record = new_record()
    record.observe(Outcome("refused"), at=1)
    record.serve_model("tiny")
    refused = {"result": "refused", "code": ""}
    registry = exposed(record)
    assert registry.get_sample_value("llm_canary_requests_total", BASE | refused | {"model": "tiny"}) == 1
    assert registry.get_sample_value("llm_canary_requests_total", BASE | refused) is None
    record.serve_model("big")
    assert registry.get_sample_value("llm_canary_requests_total", BASE | refused | {"model": "big"}) == 0


def test_a_model_label_in_the_file_wins() -> None:
    """The rules must see the same model label on the engine's and on the canary's series."""
    record = Record({"instance": "e:1", "model": "chat"})
    record.serve_model("org/chat-7b")
    assert record.series_labels()["model"] == "chat"


def test_families_are_not_repeated_for_a_second_target() -> None:
    """One TYPE a family, samples grouped under it, whatever labels each target has."""
    other = Record({"instance": "e:2", "zone": "b"})
    registry = CollectorRegistry()
    registry.register(CanaryCollector(lambda: {TARGET: new_record(), Target("e:2"): other}))
    lines = generate_latest(registry).decode().splitlines()
    types = [line for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types)) == 10
    assert registry.get_sample_value(
        "llm_canary_in_flight", {"instance": "e:2", "zone": "b"}
    ) == pytest.approx(0)


def test_tokens_are_the_servers_own_count() -> None:
    """3 + 3 prompt tokens and 1 + 1 generated; a failure and an answer without usage add none."""
    record = new_record()
    for outcome in (
        Outcome("ok", 200, 0.1, 0.1, prompt_tokens=3, generation_tokens=1),
        Outcome("http", 500),
        Outcome("ok", 200, 0.1, 0.1),
        Outcome("ok", 200, 0.1, 0.1, prompt_tokens=3, generation_tokens=1),
    ):
        record.observe(outcome, at=1.0)
    registry = exposed(record)
    assert registry.get_sample_value("llm_canary_prompt_tokens_total", BASE) == 6
    assert registry.get_sample_value("llm_canary_generation_tokens_total", BASE) == 2
