"""Milliwatts to watts, and a limit only where there is one."""

from typing import Any

import pytest


def test_watts_and_limits(drive: Any, case: Any) -> None:
    """A33: both; no limit; a limit of 0 without usage. Nothing is divided by what is not there."""
    shown = drive(case("A33-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    watts = {have["uuid"]: value for have, value in scrape.all("llm_gpu_power_watts", stat="last")}
    limits = {have["uuid"]: value for have, value in scrape.all("llm_gpu_power_limit_watts")}
    assert watts == {"GPU-a10": 64.81, "GPU-laptop": 15.749}
    assert limits == {"GPU-a10": 150.0}
    assert watts["GPU-a10"] / limits["GPU-a10"] == pytest.approx(0.4320666666666667)


def test_energy_is_in_joules(drive: Any, phase: Any) -> None:
    """The recording's 5 328 988 mJ."""
    shown = drive(phase("compute"))

    assert shown.scrape().one("llm_gpu_energy_joules_total") == pytest.approx(5328.988)
