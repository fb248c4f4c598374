"""Rows -> running stages: services, troubled watchers, the lone sentinel, recorded nodes, RAG, collectors, embeddings."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from inferwatch.scenarios import derive, drift_stage, node_stage, rag_stage, watchers_stage
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.recordings import Recordings
from inferwatch.scenarios.row import Row, StageName
from inferwatch.scenarios.stage import PORTS_A_STAGE, Engine, Stage
from inferwatch.stack import backfill, binaries, config, files, launcher, services, traces
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from inferwatch.stack.state import Selection
from slo import spec as slo_spec
from slo.names import labels, rag

FIRST_EXTRA_PORT = 110
PEER_TIMEOUT_SECONDS = 15
"""Alertmanager's own default: the second of a cluster notifies so much later than the first."""

WATCHED = Row("watched", Nothing(None), stage="watchers", requests_per_second=2.0)
"""The one service of the watchers' stage: healthy, and judged by rules whose watchers are troubled."""

STARTED: Mapping[StageName, tuple[str, ...]] = {
    # First: their longest rows take twelve minutes, and they warm up while the others start.
    "collector": ("jaeger", "collector", "receiver", "alertmanager", "prometheus"),
    "rag": ("jaeger", "collector", "receiver", "exporter-analysis", "alertmanager", "prometheus"),
    "drift": ("receiver", "exporter-engine", "alertmanager", "prometheus"),
    "nodes": ("receiver", "exporter-engine", "alertmanager", "prometheus"),
    "fleet": ("receiver", "exporter-engine", "exporter-canary", "alertmanager", "prometheus"),
    "watchers": (
        "receiver",
        "exporter-engine",
        "exporter-canary",
        "exporter-node",
        "alertmanager",
        "prometheus",
    ),
    "sentinel": ("receiver", "alertmanager", "prometheus"),
}
"""Services of a stack that each stage has; engines, and what only watchers or nodes have, come on top."""

_OF_ITSELF = (labels.JOB_PROMETHEUS, labels.JOB_ALERTMANAGER)
_OF_ENGINES = (*_OF_ITSELF, labels.JOB_ENGINE, labels.JOB_CANARY, labels.JOB_ENGINE_EXPORTER)
_OF_SPANS = (*_OF_ITSELF, rag.JOB_COLLECTOR, rag.JOB_SPANS)
TRACED: tuple[StageName, ...] = ("rag", "collector")
SCRAPED: Mapping[StageName, tuple[str, ...]] = {
    "collector": _OF_SPANS,
    "rag": (*_OF_SPANS, rag.JOB_RAG, labels.JOB_ANALYSIS),
    "fleet": _OF_ENGINES,
    "watchers": (*_OF_ENGINES, labels.JOB_NODE),
    "sentinel": _OF_ITSELF,
    "nodes": (*_OF_ITSELF, labels.JOB_ENGINE, labels.JOB_ENGINE_EXPORTER, labels.JOB_NODE),
    "drift": (*_OF_ITSELF, labels.JOB_ENGINE, labels.JOB_ENGINE_EXPORTER, labels.JOB_DRIFT),
}


def settings_of(settings: Settings, name: StageName) -> Settings:
    """Return the stage's own folder and ports."""
    number = list(STARTED).index(name)
    return replace(
        settings,
        run_dir=settings.run_dir / name,
        base_port=settings.base_port + number * PORTS_A_STAGE,
    )


def raised(
    name: StageName, rows: Sequence[Row], settings: Settings, warmup_seconds: float, reporter: Reporter
) -> Stage:
    """
    Start a stage on an empty data directory and a history that ends now; return while it warms up.

    Raises StackError when a service does not start; what was started is ended by `launcher.down`.
    """
    own = settings_of(settings, name)
    launcher.down(own, reporter)
    for folder in (own.data_dir, own.config_dir, own.run_dir / "rules", own.run_dir / "recorded"):
        shutil.rmtree(folder, ignore_errors=True)
    own.notifications_file.unlink(missing_ok=True)
    stage = _planned(name, rows, own, reporter)
    wanted, selection = list(stage.services.values()), _selection(stage)
    launcher.reconcile(own, selection, [service for service in wanted if not service.last], reporter)
    promtool = binaries.resolve("promtool", own, reporter).path
    _write_past(stage, promtool, reporter)
    launcher.reconcile(own, selection, wanted, reporter)
    if name in TRACED:
        rag_stage.begin(stage)
    if name == "drift":
        drift_stage.begin(stage)
    stage.began_at = time.time()
    stage.ready_at = stage.began_at + warmup_seconds
    return stage


def _write_past(stage: Stage, promtool: Path, reporter: Reporter) -> None:
    """What the rules look back on, before Prometheus starts. In `nodes` nothing is judged by more than minutes."""
    rows, folder, now = stage.rows, stage.settings.data_dir / "prometheus", int(time.time())
    if stage.name == "rag":
        rag_stage.write_past(stage.spec, rows, stage.settings, promtool, now)
    if stage.name not in ("fleet", "watchers", "drift"):
        return
    asked = [row for row in served(stage.name, rows) if row.engines]
    more = drift_stage.past(stage.spec, rows, now) if stage.name == "drift" else []
    if asked:
        with reporter.task(f"{stage.name}: writing the history"):
            backfill.backfill(stage.spec, folder, derive.histories(asked), promtool, now, more=more)


def served(name: StageName, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows that are services of slo.yaml in this stage."""
    asked = tuple(row for row in rows if row.engines)
    return {"fleet": rows, "watchers": (WATCHED,), "nodes": asked, "drift": rows}.get(name, ())


def _selection(stage: Stage) -> Selection:
    return Selection("urls", _urls(stage), stage.spec.services[0].id)


def _planned(name: StageName, rows: Sequence[Row], own: Settings, reporter: Reporter) -> Stage:
    """The stage with all its services, nothing started."""
    tools = ("prometheus", "alertmanager", *(traces.TOOLS if name in TRACED else ()))
    paths = {tool: binaries.resolve(tool, own, reporter).path for tool in tools}
    spec = slo_spec.load(own.spec_path)
    judged = served(name, rows)
    stage = Stage(name, own, derive.staged(spec, judged, rows), rows, {}, _engines(judged, own))
    stage.holds = derive.hold_notes(spec, rows)
    if name == "nodes":
        urls = {row: tuple(engine.url for engine in engines) for row, engines in stage.engines.items()}
        folder = own.run_dir / "recorded"
        stage.recordings = Recordings(folder, own.base_port + PORTS_A_STAGE - 1, rows, urls)
        stage.recordings.prepare()
    _write_files(stage)
    stack = {s.name: s for s in services.stack_services(spec, own, _selection(stage), paths, None)}
    sims = _sims([row for row in judged if row.shows.page is None], stage)
    recorded = node_stage.node_services(stage.recordings, own) if stage.recordings else []
    rags = rag_stage.rag_services(rows, own, reporter) if name == "rag" else []
    rags += rag_stage.collector_services(own, paths) if name == "collector" else []
    drifts = drift_stage.drift_services(rows, own) if name == "drift" else []
    if drifts:
        with reporter.task("drift: fitting the reference"):
            drift_stage.fit_reference(spec, own)
    wanted = [*sims, *recorded, *rags, *drifts, *(stack[key] for key in STARTED[name])]
    if name == "watchers":
        wanted = [
            watchers_stage.clustered(service, own) if service.name == "alertmanager" else service
            for service in wanted
        ]
        wanted += watchers_stage.second_ones(own, paths["alertmanager"])
    stage.services.update({service.name: service for service in wanted})
    return stage


def _engines(rows: Sequence[Row], own: Settings) -> dict[str, tuple[Engine, ...]]:
    ports = iter(range(own.base_port + FIRST_EXTRA_PORT, own.base_port + PORTS_A_STAGE))
    return {
        row.name: tuple(
            Engine(f"http://{HOST}:{next(ports)}", f"http://{HOST}:{next(ports)}") for _ in range(row.engines)
        )
        for row in rows
    }


def _urls(stage: Stage) -> tuple[str, ...]:
    return tuple(engine.url for engines in stage.engines.values() for engine in engines)


def _sims(rows: Sequence[Row], stage: Stage) -> list[Service]:
    return [
        Service(
            name=f"{row.name}-{number}",
            argv=services.python(
                *("sim", "--host", HOST, "--port", engine.url.rpartition(":")[2]),
                *("--control-port", engine.control_url.rpartition(":")[2]),
                *("--model", services.SIM_MODEL, "--self-load", f"{row.requests_per_second:g}"),
                *("--seed", f"{number}"),
            ),
            url=engine.url,
            ready_path="/health",
            ready_timeout_seconds=180.0,
        )
        for row in rows
        for number, engine in enumerate(stage.engines[row.name])
    ]


def _write_files(stage: Stage) -> None:
    own = stage.settings
    files.write_all(stage.spec, own, _selection(stage), traced=stage.name in TRACED)
    stage.write_targets()
    direct = any(row.direct for row in stage.rows)
    for name, text in derive.rule_files(stage.spec, direct=direct).items():
        config.write_text(stage.rules_dir / name, text)
    prometheus = config.prometheus_config(stage.spec, own, traced=stage.name in TRACED)
    prometheus["rule_files"] = [f"{stage.rules_dir}/*.yaml"]
    scraped = SCRAPED[stage.name]
    prometheus["scrape_configs"] = [job for job in prometheus["scrape_configs"] if job["job_name"] in scraped]
    if direct:
        prometheus["scrape_configs"].append(config.direct_job(stage.direct_file))
    if stage.name == "rag":
        rag_stage.write_targets(stage.rows, own)
    if stage.name == "drift":
        drift_stage.write_targets(stage.rows, own)
    if stage.name == "collector":
        rag_stage.widen(prometheus, own)
    if stage.recordings is not None:
        node_stage.widen(prometheus, stage.recordings)
    if stage.name == "watchers":
        watchers_stage.widen(prometheus, own)
        config.write_text(own.alertmanager_config, watchers_stage.two_ways(stage.spec, own))
    config.write_yaml(own.prometheus_config, prometheus)
