"""Clock events: one series a reason, idle is no throttling."""

from typing import Any

import pytest

from exporters.node.clocks import POWER_BRAKE, POWER_CAP, REASONS, THERMAL


@pytest.mark.parametrize(
    ("mask", "reasons", "throttled"),
    [
        (0x0, set(), False),
        (0x1, {"gpu_idle"}, False),
        (0x2, {"applications_clocks_setting"}, False),
        (0x100, {"display_clock_setting"}, False),
        (0x4, {"sw_power_cap"}, True),
        (0x21, {"gpu_idle", "sw_thermal_slowdown"}, True),
        (0x40, {"hw_thermal_slowdown"}, True),
        (0x88, {"hw_slowdown", "hw_power_brake_slowdown"}, True),
    ],
)
def test_masks_are_decoded(drive: Any, mask: int, reasons: set[str], throttled: bool) -> None:
    """A34: only power and thermal reasons are throttling; application clocks and display are not."""
    calls = {"nvmlDeviceGetCurrentClocksEventReasons": {"return": mask}}
    shown = drive({"devices": [{"index": 0, "calls": {"nvmlDeviceGetUUID": {"return": "GPU-a"}, **calls}}]})
    shown.run()

    held = {have["reason"] for have, value in shown.scrape().all("llm_gpu_clock_event_ratio") if value == 1}
    assert held == reasons
    assert bool(held & {*THERMAL, *POWER_BRAKE, *POWER_CAP}) is throttled
    assert "gpu_idle" in REASONS


def test_an_older_driver_answers_under_the_older_name(drive: Any) -> None:
    """nvmlDeviceGetCurrentClocksThrottleReasons is what drivers before 535 have."""
    calls = {
        "nvmlDeviceGetUUID": {"return": "GPU-a"},
        "nvmlDeviceGetCurrentClocksThrottleReasons": {"return": 0x40},
    }
    shown = drive({"devices": [{"index": 0, "calls": calls}]})
    shown.run()

    assert shown.scrape().one("llm_gpu_clock_event_ratio", reason="hw_thermal_slowdown") == 1


def test_the_drivers_own_count_is_in_seconds(drive: Any, phase: Any) -> None:
    """The recording under compute load: 3 768 280 896 ns held by the software power cap."""
    shown = drive(phase("compute"))
    scrape = shown.scrape()

    assert scrape.one("llm_gpu_clock_event_seconds_total", reason="sw_power_cap") == pytest.approx(
        3.768280896
    )
    assert scrape.one("llm_gpu_clock_max_hertz", clock="sm") == 1_980_000_000
