"""What our rules cost: a real Prometheus scrapes 1,000 engines and evaluates the committed rule files.

The engines are one small server that answers with a recorded page, as our exporter translates it, its
counters rising. It is timed once five minutes of engines are there, so that windows of 5 m are full (and
of 10 m more than half full); what burn windows are summed from is backfilled over three days.
"""

import asyncio
import gzip
import json
import os
import socket
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from aiohttp import ClientSession, web
from rich.console import Console

from alerts.events import slo_labels
from alerts.scope import Scope
from alerts.windows import DAY_SECONDS, events, period_seconds, step_seconds
from exporters.engine.labels import LabelCache
from exporters.engine.render import EngineVersion, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER
from inferwatch.stack import binaries
from inferwatch.stack.blocks import ConstantSeries, write_blocks
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec
from slo.burn import window_lengths
from slo.names import canary, engine, labels, records
from slo.spec import Spec

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests/fixtures/engine/captures/vllm-0.32.0-cpu-metrics_light.txt.gz"
GOAL_SECONDS = 1.0
_HISTORY_DAYS = 3
_SHOWN_RULES = 8
_DURATION = "prometheus_rule_group_last_duration_seconds"


@dataclass(frozen=True)
class Plan:
    """How many engines of how many models, how long they run before rules are timed, and how long then."""

    instances: int = 1_000
    models: int = 10
    warm_seconds: int = 330
    timed_seconds: int = 130


class BenchError(RuntimeError):
    """The benchmark could not be run as stated; the text says why."""


def run(plan: Plan | None = None) -> dict[str, object]:
    """Time every rule group of the committed rules at 1,000 engines of 10 models; takes about eight minutes.

    Keys: evaluation_seconds_max (the slowest group; medians over its evaluations), evaluation_seconds_sum
    (all groups together), groups (name -> seconds) and the same at their slowest, cores (share of a core
    that evaluation takes all in all), and what it ran on: a busy machine (load_average over cpus)
    stretches the times. Raises BenchError.
    """
    with tempfile.TemporaryDirectory(prefix="inferwatch-bench-") as folder:
        return asyncio.run(_measure(plan or Plan(), Path(folder), slo_spec.load()))


async def _measure(plan: Plan, folder: Path, spec: Spec) -> dict[str, object]:
    service = spec.services[0]
    page = exposition(gzip.decompress(CAPTURE.read_bytes()))
    reporter, settings = Reporter(Console(stderr=True)), default_settings()
    promtool = binaries.resolve("promtool", settings, reporter).path
    prometheus = binaries.resolve("prometheus", settings, reporter)
    with reporter.task("writing what rules look back at"):
        history = list(_history(plan, spec, service.id, int(time.time())))
        await asyncio.to_thread(write_blocks, history, folder / "data", promtool)
    runner, port = await _serve(plan, page)
    config = folder / "prometheus.yml"
    config.write_text(json.dumps(_config(plan, spec, service.id, port, folder)), encoding="utf-8")
    listen = f"127.0.0.1:{_free_port()}"
    process = await asyncio.create_subprocess_exec(
        str(prometheus.path),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={listen}",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=(folder / "log").open("wb"),
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


def exposition(body: bytes) -> list[tuple[str, float]]:
    """A recorded page to the canonical samples that one engine adds: name with labels, and value."""
    reading = translate(body, ADAPTER, LabelCache(), "0.32.0", 20_000)
    text = render_reading(reading, EngineVersion("0.32.0")).decode()
    samples = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return [
        *((name, float(value)) for name, value in samples),
        (engine.PROBE_SUCCESS, 1.0),
        *((f'{engine.PROBE_FAILURE}{{reason="{reason}"}}', 0.0) for reason in engine.PROBE_REASONS),
    ]


def page_text(page: list[tuple[str, float]], model: int, step: int) -> str:
    """The page of one model at a step: counters and buckets a per cent higher each time, gauges as they are."""
    lines = []
    for name, value in page:
        rises = name.partition("{")[0].endswith(("_total", "_bucket", "_count", "_sum"))
        now = value * (100 + step) / 100 if rises else value
        lines.append(f"{name.replace('tiny', f'model-{model}')} {now!r}")
    return "\n".join(lines) + "\n"


def _canary_text(plan: Plan, service: str) -> str:
    lines = []
    for number in range(plan.instances):
        own = f'service="{service}",instance="e-{number}",model="model-{number % plan.models}"'
        lines += [
            f"{canary.SUCCESS}{{{own}}} 1",
            f"{canary.LAST_SUCCESS}{{{own}}} {time.time()}",
            f'{canary.REQUESTS}{{{own},result="ok",code="200"}} 9',
            *(f'{canary.REQUESTS}{{{own},result="http",code="{code}"}} 0' for code in (401, 404, 500, 503)),
            *(
                f"{family}{part} 9"
                for family, bound in ((canary.REQUEST_DURATION, "2.0"), (canary.TIME_TO_FIRST_TOKEN, "0.5"))
                for part in (f"_count{{{own}}}", f'_bucket{{{own},le="{bound}"}}')
            ),
        ]
    return "\n".join(lines) + "\n"


async def _serve(plan: Plan, page: list[tuple[str, float]]) -> tuple[web.AppRunner, int]:
    begun, made = time.monotonic(), dict[tuple[int, int], str]()

    async def probe(request: web.Request) -> web.Response:
        key = (int(request.query["model"]), int((time.monotonic() - begun) / 5))
        if key not in made:
            made[key] = page_text(page, *key)
        return web.Response(text=made[key])

    async def canaries(request: web.Request) -> web.Response:
        return web.Response(text=_canary_text(plan, request.query["service"]))

    app = web.Application()
    app.router.add_get("/probe", probe)
    app.router.add_get("/canary", canaries)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, int(runner.addresses[0][1])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _config(plan: Plan, spec: Spec, service: str, port: int, folder: Path) -> dict[str, Any]:
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {
                "instance": f"e-{n}",
                "service": service,
                "__param_model": str(n % plan.models),
            },
        }
        for n in range(plan.instances)
    ]
    (folder / "targets.json").write_text(json.dumps(targets), encoding="utf-8")
    return {
        "global": {
            "scrape_interval": f"{spec.intervals.scrape_seconds}s",
            "scrape_timeout": f"{spec.intervals.scrape_timeout_seconds:g}s",
            "evaluation_interval": f"{spec.intervals.evaluation_seconds}s",
        },
        "rule_files": [str(ROOT / "alerts/rules/*.yaml")],
        "scrape_configs": [
            {
                "job_name": labels.JOB_ENGINE,
                "metrics_path": "/probe",
                "file_sd_configs": [{"files": [str(folder / "targets.json")]}],
            },
            {
                "job_name": labels.JOB_CANARY,
                "metrics_path": "/canary",
                "honor_labels": True,
                "params": {"service": [service]},
                "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
            },
        ],
    }


def _history(plan: Plan, spec: Spec, service: str, end: int) -> Iterator[ConstantSeries]:
    """When each target was last seen, and what burn windows are summed from."""
    for number in range(plan.instances):
        known = {"service": service, "instance": f"e-{number}", "model": f"model-{number % plan.models}"}
        yield ConstantSeries(
            records.TARGET_SEEN, known, float(end), end - 3600, end, spec.intervals.slow_evaluation_seconds
        )
    yield from _burn_history(plan, Scope(spec, spec.service(service)), end)


def _burn_history(plan: Plan, scope: Scope, end: int) -> Iterator[ConstantSeries]:
    reach = _HISTORY_DAYS * DAY_SECONDS
    wanted = {
        (*events(scope, length), step_seconds(scope, length)): min(length, reach)
        for length in sorted((*window_lengths(scope.spec.budget), period_seconds(scope)))
    }
    for slo in scope.service.slos:
        for number in range(plan.models):
            own = slo_labels(scope, slo) | {labels.MODEL: f"model-{number}"}
            for (bad, total, step), length in wanted.items():
                yield ConstantSeries(bad, own, 0.0, end - length, end, step)
                yield ConstantSeries(total, own, 10.0, end - length, end, step)


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
        "models": plan.models,
        "series": int(head),
        "load_average": round(os.getloadavg()[0], 1),
        "cpus": os.cpu_count(),
    }


async def _value(session: ClientSession, url: str, query: str) -> float:
    async with session.get(f"{url}/api/v1/query", params={"query": query}) as answer:
        result = (await answer.json())["data"]["result"]
    return float(result[0]["value"][1]) if result else 0.0
