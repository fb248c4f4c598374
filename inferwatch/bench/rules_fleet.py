"""The engines of `inferwatch bench rules`: one small server that answers for all of them, and their past.

Each page is a recorded one, its counters rising: as our exporter translates it, or as vLLM wrote it.
"""

import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from alerts.events import slo_labels
from alerts.scope import Scope
from alerts.windows import DAY_SECONDS, events, period_seconds, step_seconds
from exporters.engine.labels import LabelCache
from exporters.engine.render import EngineVersion, render_reading
from exporters.engine.translate import translate
from exporters.engine.vllm import ADAPTER
from inferwatch.stack.blocks import ConstantSeries
from slo.burn import window_lengths
from slo.names import canary, engine, labels, records
from slo.spec import Spec

ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "tests/fixtures/engine/captures/vllm-0.32.0-cpu-metrics_light.txt.gz"
HISTORY_DAYS = 3


@dataclass(frozen=True)
class Plan:
    """
    How many engines of how many models, how long they run before rules are timed, and how long then.

    *direct*: Prometheus scrapes them itself, without our exporter.
    """

    instances: int = 1_000
    models: int = 10
    warm_seconds: int = 330
    timed_seconds: int = 130
    direct: bool = False


def engine_page(plan: Plan) -> list[tuple[str, float]]:
    """The samples that one engine adds: name with labels, and value."""
    body = gzip.decompress(CAPTURE.read_bytes())
    return samples(body) if plan.direct else exposition(body)


def samples(body: bytes) -> list[tuple[str, float]]:
    """A page's samples; not the times at which counters were made, which deploy/k8s drops as well."""
    lines = (line for line in body.decode().splitlines() if line and not line.startswith("#"))
    split = (line.rsplit(" ", 1) for line in lines)
    return [(name, float(value)) for name, value in split if not name.partition("{")[0].endswith("_created")]


def exposition(body: bytes) -> list[tuple[str, float]]:
    """A recorded page to the canonical samples that one engine adds: name with labels, and value."""
    reading = translate(body, ADAPTER, LabelCache(), "0.32.0", 20_000)
    text = render_reading(reading, EngineVersion("0.32.0"))
    return [
        *samples(text),
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


async def serve(plan: Plan, page: list[tuple[str, float]]) -> tuple[web.AppRunner, int]:
    """Answer for all engines and their canaries on a free port of 127.0.0.1."""
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


def prometheus_config(plan: Plan, spec: Spec, service: str, port: int, folder: Path) -> dict[str, Any]:
    """Every engine as a target of its own, and the committed rules."""
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
                "job_name": labels.JOB_DIRECT if plan.direct else labels.JOB_ENGINE,
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


def history(plan: Plan, spec: Spec, service: str, end: int) -> Iterator[ConstantSeries]:
    """When each target was last seen, and what burn windows are summed from."""
    for number in range(plan.instances):
        known = {"service": service, "instance": f"e-{number}", "model": f"model-{number % plan.models}"}
        yield ConstantSeries(
            records.TARGET_SEEN, known, float(end), end - 3600, end, spec.intervals.slow_evaluation_seconds
        )
    yield from _burn_history(plan, Scope(spec, spec.service(service)), end)


def _burn_history(plan: Plan, scope: Scope, end: int) -> Iterator[ConstantSeries]:
    reach = HISTORY_DAYS * DAY_SECONDS
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
