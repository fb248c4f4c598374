"""The whole way of traced requests with fewer of them and a shorter outage; `make trace-e2e` asks 200 and takes 60 s."""

from pathlib import Path

import pytest
from rich.console import Console

from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings
from inferwatch.trace_e2e import main
from inferwatch.trace_e2e.plan import Plan

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1500)]

PLAN = Plan(requests=40, outage=20.0, slow_on=4.0)
BASE_PORT = 22600


def test_every_claim_about_traces_holds(tmp_path: Path) -> None:
    """Connected, adding up, counted, linked, one alert for one slow stage, nothing lost, nothing leaked."""
    settings = default_settings(run_dir=tmp_path, base_port=BASE_PORT)
    result = main.run(settings, Reporter(Console(stderr=True)), PLAN)
    assert result["failures"] == []
    assert result["passed"] is True
    assert result["stage_sum_apart"]["of"] == 40
    assert result["outage"]["traces"] > 0
    assert result["searched"]["needles"] > 40
