"""Sweeps and points of sweeps as tests need them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadtests import sweep as sweep_module
from loadtests.compare import Figure
from loadtests.plan import open_loop, parse_plan
from loadtests.sweep import SweepPoint
from loadtests.sweepplan import SweepPlan
from loadtests.verdict import GateExit
from slo import spec as slo_spec

PLAN = parse_plan({"base_url": "http://127.0.0.1:1", "model": "m", "arrival": open_loop(1, 1)})
SPEC = slo_spec.load()
# Whether the client that tests start keeps its own limits depends on what else the machine does.
PATIENT = SPEC.model_copy(
    update={
        "load": SPEC.load.model_copy(
            update={
                "client": SPEC.load.client.model_copy(update={"max_lag_seconds": 60, "max_cpu_ratio": 60})
            }
        ),
        "gate_test": SPEC.gate_test.model_copy(update={"min_rate_ratio": 0.1}),
    }
)


def a_sweep(**changes: Any) -> SweepPlan:
    return SweepPlan.model_validate({"plan": PLAN, "seconds": 2, **changes})


def a_point(
    settings: dict[str, Any],
    folder: Path,
    code: GateExit = GateExit.PASSED,
    ttft: float | None = 0.1,
    rate: float = 9.0,
    *,
    many_errors: bool = False,
    quality: Figure | None = None,
) -> SweepPoint:
    latency = {m: None if ttft is None else {"p95": ttft} for m in ("ttft_s", "e2e_s")}
    summary = {"latency": latency, "rates": {"output_tokens_per_s": rate}, "error_ratio": 0.0}
    why = () if code is GateExit.PASSED else (f"{code.name.lower()} for a reason",)
    return SweepPoint(settings, folder, code, why, many_errors, summary, quality)


def measured_by(
    monkeypatch: pytest.MonkeyPatch, code: Callable[[dict[str, Any]], GateExit]
) -> list[tuple[dict[str, Any], float]]:
    """Replace the measuring of a point by *code* of its settings; returns the settings and seconds asked for."""
    measured: list[tuple[dict[str, Any], float]] = []

    def fake(
        sweep: SweepPlan, settings: dict[str, Any], seconds: float, folder: Path, spec: object
    ) -> SweepPoint:
        measured.append((settings, seconds))
        return a_point(settings, folder, code(settings))

    monkeypatch.setattr(sweep_module, "_point", fake)
    return measured


def ten_a_slot(settings: dict[str, Any]) -> GateExit:
    """An engine that keeps its promise up to 10 requests per second and slot."""
    return GateExit.PASSED if settings["rate"] <= 10 * settings.get("slots", 1) else GateExit.FAILED
