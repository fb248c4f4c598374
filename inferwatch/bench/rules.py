"""What our rules cost: a real Prometheus scrapes 1,000 engines and evaluates the committed rule files.

The engines (rules_fleet.py) show a recorded page. It is timed once five minutes of engines are there, so
that windows of 5 m are full (and of 10 m more than half full); what burn windows are summed from is
backfilled over three days.
"""

import asyncio
import json
import os
import socket
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from aiohttp import ClientSession
from rich.console import Console

from inferwatch.bench.rules_fleet import Plan, engine_page, history, prometheus_config, serve
from inferwatch.stack import binaries
from inferwatch.stack.blocks import write_blocks
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec
from slo.names import records
from slo.spec import Spec

GOAL_SECONDS = 1.0
_SHOWN_RULES = 8


class BenchError(RuntimeError):
    """The benchmark could not be run as stated; the text says why."""


def run(plan: Plan) -> dict[str, object]:
    """Time every rule group of the committed rules; as planned by default it takes about eight minutes.

    Keys: evaluation_seconds_max (the slowest group; medians over its evaluations), evaluation_seconds_sum
    (all groups together), groups (name -> seconds) and the same at their slowest, cores (share of a core
    that evaluation takes all in all), and what it ran on: a busy machine (load_average over cpus)
    stretches the times. under_goal: whether the slowest group stays under goal_seconds. Raises BenchError.
    """
    with tempfile.TemporaryDirectory(prefix="inferwatch-bench-") as folder:
        return asyncio.run(_measure(plan, Path(folder), slo_spec.load()))


async def _measure(plan: Plan, folder: Path, spec: Spec) -> dict[str, object]:
    service = spec.services[0]
    page = engine_page(plan)
    reporter, settings = Reporter(Console(stderr=True)), default_settings()
    promtool = binaries.resolve("promtool", settings, reporter).path
    prometheus = binaries.resolve("prometheus", settings, reporter)
    with reporter.task("writing what rules look back at"):
        past = list(history(plan, spec, service.id, int(time.time())))
        await asyncio.to_thread(write_blocks, past, folder / "data", promtool)
    runner, port = await serve(plan, page)
    config = folder / "prometheus.yml"
    config.write_text(json.dumps(prometheus_config(plan, spec, service.id, port, folder)), encoding="utf-8")
    listen = f"127.0.0.1:{_free_port()}"
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(prometheus.path),
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={listen}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=log,
        )
    try:
        with reporter.task(f"{plan.instances} engines for {plan.warm_seconds + plan.timed_seconds} s"):
            return await _timed(plan, f"http://{listen}", process.pid, folder) | {
                "series_per_engine": len(page),
                "prometheus": prometheus.version,
            }
    finally:
        process.terminate()
        await process.wait()
        await runner.cleanup()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _timed(plan: Plan, url: str, pid: int, folder: Path) -> dict[str, object]:
    seen: dict[str, dict[str, float]] = {}
    intervals: dict[str, float] = {}
    rules: dict[str, float] = {}
    async with ClientSession() as session:
        await asyncio.sleep(plan.warm_seconds)
        watched, begun = psutil.Process(pid), time.monotonic()
        before, until = watched.cpu_times(), begun + plan.timed_seconds
        while time.monotonic() < until:
            async with session.get(f"{url}/api/v1/rules") as answer:
                groups = (await answer.json())["data"]["groups"]
            for group in groups:
                name, spent = str(group["name"]), float(group["evaluationTime"])
                seen.setdefault(name, {})[str(group["lastEvaluation"])] = spent
                intervals[name] = float(group["interval"])
                for number, rule in enumerate(group["rules"]):
                    place = f"{name} {number + 1} {rule['name']}"
                    rules[place] = max(rules.get(place, 0.0), float(rule["evaluationTime"]))
            await asyncio.sleep(2)
        after, passed = watched.cpu_times(), time.monotonic() - begun
        faults = [
            f"{rule['name']}: {rule['lastError']}"
            for group in groups
            for rule in group["rules"]
            if rule.get("lastError")
        ]
        known = await _value(session, url, f"count({records.INSTANCE_MODEL})")
        async with session.get(f"{url}/api/v1/status/tsdb") as answer:
            head = (await answer.json())["data"]["headStats"]["numSeries"]
    if faults or known != plan.instances:
        log = (folder / "log").read_text(encoding="utf-8", errors="replace")[-500:]
        raise BenchError(f"{known:g} of {plan.instances} engines were judged; {faults[:3]}; {log}")
    usual = {name: statistics.median(spent.values()) for name, spent in seen.items()}
    slowest = {name: max(spent.values()) for name, spent in seen.items()}
    return {
        "evaluation_seconds_max": round(max(usual.values()), 3),
        "evaluation_seconds_sum": round(sum(usual.values()), 3),
        "goal_seconds": GOAL_SECONDS,
        "under_goal": max(usual.values()) < GOAL_SECONDS,
        "groups": {name: round(spent, 3) for name, spent in sorted(usual.items())},
        "groups_at_their_slowest": {name: round(spent, 3) for name, spent in sorted(slowest.items())},
        "slowest_rules": {
            place: round(rules[place], 3) for place in sorted(rules, key=lambda p: -rules[p])[:_SHOWN_RULES]
        },
        "cores": round(sum(spent / intervals[name] for name, spent in usual.items()), 3),
        "prometheus_cores": round((after.user + after.system - before.user - before.system) / passed, 2),
        "instances": plan.instances,
        "scraped": "directly" if plan.direct else "through the exporter",
        "models": plan.models,
        "series": int(head),
        "load_average": round(os.getloadavg()[0], 1),
        "cpus": os.cpu_count(),
    }


async def _value(session: ClientSession, url: str, query: str) -> float:
    async with session.get(f"{url}/api/v1/query", params={"query": query}) as answer:
        result = (await answer.json())["data"]["result"]
    return float(result[0]["value"][1]) if result else 0.0
