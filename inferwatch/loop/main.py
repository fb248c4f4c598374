"""Start a real vLLM and the stack beside it, run every phase, print one JSON line; exit 0 only if all holds."""

import json
import os
import time
from pathlib import Path
from typing import Any

from inferwatch.loop.bench import Bench, Findings
from inferwatch.loop.engine import RealEngine
from inferwatch.loop.phases import BAD_DEPLOY, PHASES
from inferwatch.loop.plan import LoopPlan
from inferwatch.stack import backfill, binaries, launcher, observe, vllm_cpu
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection
from slo import spec as slo_spec

SLO_SERVICE_INDEX = 0


def run(settings: Settings, reporter: Reporter, plan: LoopPlan | None = None) -> dict[str, Any]:
    """
    Run the loop in its own folder and on its own ports; everything it started is ended again.

    Returns the result; its `passed` is true only when every claim held.
    """
    plan = plan or LoopPlan()
    spec = slo_spec.load(settings.spec_path)
    installed = vllm_cpu.ensure(settings, reporter)
    engine_core, others = _split_cores()
    service = spec.services[SLO_SERVICE_INDEX].id
    found = Findings()
    folder = settings.run_dir / "load" / time.strftime("%Y%m%dT%H%M%S")
    folder.mkdir(parents=True)
    settings.notifications_file.unlink(missing_ok=True)
    before = os.sched_getaffinity(0)
    with RealEngine(installed, settings, reporter, engine_core) as engine:
        try:
            os.sched_setaffinity(0, others)
            engine.start(BAD_DEPLOY)
            _backfill(settings, service, plan, reporter)
            # Attached engines are only observed until their latency thresholds are accepted; here they are.
            observe.accept(settings, service)
            launcher.up(settings, Selection("urls", (engine.url,), service), reporter)
            return _run_phases(Bench(spec, settings, plan, engine, reporter, folder, found))
        finally:
            launcher.down(settings, reporter)
            os.sched_setaffinity(0, before)


def _split_cores() -> tuple[int, set[int]]:
    """The engine's core, and those that load, Prometheus and exporters share."""
    cores = os.sched_getaffinity(0)
    engine_core = max(cores)
    return engine_core, (cores - {engine_core}) or cores


def _backfill(settings: Settings, service: str, plan: LoopPlan, reporter: Reporter) -> None:
    data_dir = settings.data_dir / "prometheus"
    spec = slo_spec.load(settings.spec_path)
    promtool = binaries.resolve("promtool", settings, reporter).path
    with reporter.task("writing a healthy history"):
        history = backfill.ServiceHistory(service, vllm_cpu.SERVED_MODEL, plan.history_requests_per_second)
        written = backfill.backfill(spec, data_dir, [history], promtool)
    reporter.say(f"healthy history: {written.samples} samples in {written.blocks} blocks")


def _run_phases(bench: Bench) -> dict[str, Any]:
    found = bench.found
    seconds: dict[str, float] = {}
    for phase in PHASES:
        began = time.monotonic()
        bench.reporter.say(f"— {phase.__name__.replace('_', ' ')}")
        phase(bench)
        seconds[phase.__name__] = round(time.monotonic() - began, 1)
    return {
        **_identity(bench),
        "fault_to_notification_s": found.fault_to_notification_s,
        "counts_match": found.counts_match,
        "quantiles_within_bucket": found.quantiles_within_bucket,
        "counts": found.counts,
        "quantiles": found.quantiles,
        "still_firing": found.still_firing,
        "phase_seconds": seconds,
        "failures": found.failures,
        "passed": not found.failures,
    }


def _identity(bench: Bench) -> dict[str, Any]:
    """What the live server and its process say of themselves."""
    pid = bench.engine.pid
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return {
        "engine_version": bench.engine.version(),
        "engine_pid": pid,
        "engine_command": " ".join(Path(part.decode()).name for part in command[:3]),
    }


def line(result: dict[str, Any]) -> str:
    """The one line that the loop prints."""
    return json.dumps(result)
