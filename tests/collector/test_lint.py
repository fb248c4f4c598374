"""Collector configurations that failed other people are flagged; ours is not."""

import json
from pathlib import Path

import pytest
import yaml

from inferwatch.collector import lint
from inferwatch.stack.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests" / "fixtures" / "collector"
OURS = (ROOT / "otel-collector" / "config.yaml").read_text(encoding="utf-8")
EMPTY: dict[str, str] = {}


def test_a_receiver_without_endpoint_is_flagged_in_a_container() -> None:
    """A52: since 0.104 it listens on localhost; the file with endpoints is good, and outside containers both are."""
    case = CASES / "A52-receiver-listens-on-localhost"
    wanted = json.loads((case / "expected.json").read_text())["flag"]
    found = {
        file.name: lint.faults(file.read_text(), EMPTY, container=True) for file in sorted(case.glob("*.yml"))
    }

    assert [name for name, faults in found.items() if faults] == wanted
    assert found["collector.yml"] == [
        f"receivers.otlp.protocols.{protocol}: no endpoint, so it listens on localhost and no other container "
        "reaches it; write 0.0.0.0:PORT"
        for protocol in ("grpc", "http")
    ]
    assert lint.faults((case / "collector.yml").read_text(), EMPTY, container=False) == []


def test_minutes_meant_as_milliseconds_are_flagged() -> None:
    """A72: 5m among milliseconds is 300000 ms, out of order after position 6 and out of any plausible range."""
    case = CASES / "A72-bucket-list-typo-and-order"
    wanted = json.loads((case / "expected.json").read_text())
    text = (case / "collector_fragment.yml").read_text()
    buckets = yaml.safe_load(text)["connectors"]["spanmetrics"]["histogram"]["explicit"]["buckets"]
    faults = lint.faults(text, EMPTY, container=False)

    assert lint.milliseconds(buckets) == wanted["ms"]
    first, second = wanted["error_at"]
    assert any(f"not strictly ascending between positions {first} and {second}" in fault for fault in faults)
    assert any("position 6 is 300000 ms" in fault for fault in faults)


def test_a_user_as_a_dimension_is_flagged() -> None:
    """A51: user.id makes a series a user, and dimensions_cache_size is no limit."""
    faults = lint.faults(
        (CASES / "A51-span-name-cardinality" / "collector_fragment.yml").read_text(), EMPTY, container=False
    )

    assert any("user.id has values without end" in fault for fault in faults)
    assert any("dimensions_cache_size is no limit" in fault for fault in faults)
    assert any("span.name is a dimension unless it is excluded" in fault for fault in faults)


def test_names_that_depend_on_the_version_are_flagged() -> None:
    """A49: without namespace and unit the names are those of whatever version runs."""
    pinned = (
        "connectors: {span_metrics: {namespace: traces.span.metrics, exclude_dimensions: [span.name],"
        " aggregation_cardinality_limit: 10, histogram: {unit: s}}}"
    )

    assert lint.faults(pinned, EMPTY, container=False) == []
    for part in ("namespace: traces.span.metrics, ", "unit: s"):
        assert any(
            "names would change with the version" in fault
            for fault in lint.faults(pinned.replace(part, ""), EMPTY, container=False)
        )


def test_pprof_is_flagged() -> None:
    """An open profiler shows memory, prompts included."""
    assert lint.faults("service: {extensions: [health_check, pprof]}", EMPTY, container=False) == [
        "service.extensions: pprof shows memory to whoever reaches its port; take it out"
    ]


@pytest.mark.parametrize(("host", "reached"), [("0.0.0.0", True), ("127.0.0.1", False)])
def test_ours_is_good_where_its_host_is_set(host: str, reached: bool) -> None:
    """In a container our config needs INFERWATCH_OTLP_HOST; with it nothing is wrong."""
    faults = lint.faults(OURS, {"INFERWATCH_OTLP_HOST": host}, container=True)

    assert (faults == []) is reached
    assert len(faults) == (0 if reached else 2)


def test_ours_is_good_on_loopback(settings: Settings) -> None:
    """As the native launcher starts it."""
    from inferwatch.stack import traces

    assert lint.faults(OURS, traces.collector_env(settings), container=False) == []
