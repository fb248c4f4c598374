"""The failure matrix in CI: faults that are broken on purpose, and ten healthy minutes beside them."""

import json
from typing import Any

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1500)]

ROWS = {
    "healthy",
    "slow-decode",
    "errors",
    "errors-some",
    "hang",
    "down",
    "one-of-two-removed",
    "canary-lost",
    "rule-broken",
    "gpu-lost",
    "gpu-xid-hardware",
    "gpu-remap-pending",
    "vectors-refused",
}


@pytest.fixture(scope="module")
def result(matrix: Any) -> dict[str, Any]:
    """What the run printed; waits for its end."""
    matrix.process.wait(timeout=1400)
    print(matrix.log.read_text(encoding="utf-8"))
    found: dict[str, Any] = json.loads(matrix.result.read_text(encoding="utf-8"))
    print(json.dumps(found, indent=1))
    assert (matrix.process.returncode == 0) == found["passed"]
    return found


def row(result: dict[str, Any], name: str) -> dict[str, Any]:
    """One row of the result."""
    return next(one for one in result["rows"] if one["row"] == name)


def test_every_row_is_as_expected(result: dict[str, Any]) -> None:
    """What did not hold stands in a sentence; no page came that belongs to no row."""
    assert {one["row"] for one in result["rows"]} == ROWS
    assert {one["row"]: one["failures"] for one in result["rows"] if one["failures"]} == {}
    assert result["unexplained_pages"] == {}


def test_ten_healthy_minutes_notify_nobody(result: dict[str, Any]) -> None:
    """Not even a warning in ten minutes, beside services that page."""
    healthy = row(result, "healthy")
    assert healthy["seconds"] >= 600
    assert healthy["deliveries"] == []
    assert healthy["seen"] == []


def test_recorded_gpus_are_told_as_recorded_and_bring_their_alerts(result: dict[str, Any]) -> None:
    """The real agent on a recorded card that is lost, throws an XID, waits for a remapped row; said plainly."""
    assert "recorded, not real" in result["recorded"]
    for name, alert in (
        ("gpu-lost", "GpuLost"),
        ("gpu-xid-hardware", "GpuXidHardware"),
        ("gpu-remap-pending", "GpuRowRemapPending"),
    ):
        (delivery,) = row(result, name)["deliveries"]
        assert delivery["alert"] == alert
        assert 0 < delivery["delay_seconds"] <= 1.25 * delivery["theory_seconds"] + 0.1
    # An XID stays in its window of ten minutes.
    assert row(result, "gpu-lost")["deliveries"][0]["recovery_seconds"] is not None
    assert row(result, "gpu-remap-pending")["deliveries"][0]["recovery_seconds"] is not None


@pytest.mark.parametrize(
    ("name", "alert"),
    [
        ("slow-decode", "LatencyBurnFast"),
        ("errors", "RequestsFailing"),
        ("errors-some", "AvailabilityBurnFast"),
        ("hang", "EngineHung"),
        ("down", "EngineDown"),
        ("one-of-two-removed", "TargetVanished"),
        ("canary-lost", "ExporterDown"),
        ("rule-broken", "RuleEvaluationFailing"),
        ("vectors-refused", "EmbeddingVectorsRejected"),
    ],
)
def test_the_alert_is_delivered_and_ends(result: dict[str, Any], name: str, alert: str) -> None:
    """Fault to webhook within a quarter more than theory allows, and resolved after the mend."""
    delivery = next(d for d in row(result, name)["deliveries"] if d["alert"] == alert)
    assert 0 < delivery["delay_seconds"] <= 1.25 * delivery["theory_seconds"] + 0.1
    assert delivery["recovery_seconds"] is not None


def test_pages_for_down_hang_and_total_errors_keep_the_promise(result: dict[str, Any]) -> None:
    """45 s from fault to delivered page."""
    for name, alert in (("down", "EngineDown"), ("hang", "EngineHung"), ("errors", "RequestsFailing")):
        delivery = next(d for d in row(result, name)["deliveries"] if d["alert"] == alert)
        assert delivery["delay_seconds"] <= 45, name
