"""A selection -> the services of the stack, in start order, as a literal list."""

import sys
from collections.abc import Mapping
from pathlib import Path

from inferwatch.stack import traces, vllm_cpu
from inferwatch.stack.config import RAG_SERVICE
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import HOST, Settings
from inferwatch.stack.state import Selection
from slo.spec import Spec

SIM_MODEL = "sim-llama"
SIM_REQUESTS_PER_SECOND = 2
# Kept beyond the error budget's period, so that its first day can still be read on its last.
RETENTION_MARGIN_DAYS = 5


def stack_services(
    spec: Spec,
    settings: Settings,
    selection: Selection,
    binaries: Mapping[str, Path],
    engine: vllm_cpu.VllmCpu | None,
    sentence_model: Path | None = None,
) -> list[Service]:
    """
    Return what must run for *selection*.

    *binaries* holds the paths of prometheus and alertmanager, and of what tracing needs where there shall be
    tracing; *engine* is needed for ``vllm-cpu`` only, the folder of a
    *sentence_model* for the RAG service only.
    """
    tracing = traces.services(settings, binaries)
    return [
        *tracing,
        *_own_engine(settings, selection, engine, traced=bool(tracing)),
        *([_rag(settings, selection, sentence_model)] if sentence_model else []),
        receiver(settings),
        _exporter_engine(settings),
        _exporter_canary(settings),
        _exporter_node(settings),
        *([_exporter_drift(settings)] if settings.drift_config.is_file() else []),
        alertmanager(settings, binaries["alertmanager"]),
        prometheus(spec, settings, binaries["prometheus"], settings.rules_dir),
        _exporter_analysis(settings),
        _dashboards(spec, settings),
    ]


def retention_days(spec: Spec) -> float:
    """How long Prometheus keeps samples: the budget's period and a margin."""
    return spec.budget.period_days + RETENTION_MARGIN_DAYS


def _own_engine(
    settings: Settings, selection: Selection, engine: vllm_cpu.VllmCpu | None, *, traced: bool
) -> list[Service]:
    if selection.engine == "urls":
        return []
    if selection.engine == "sim":
        return [_sim(settings)]
    if selection.engine == "vllm-cpu" and engine is not None:
        return [vllm_cpu.service(engine, settings, traced=traced)]
    raise StackError(f"{selection.engine!r} is not an engine; use sim, vllm-cpu or URLs")


def python(*words: str) -> tuple[str, ...]:
    """Return the command of a module of ours, run by this interpreter."""
    return (sys.executable, "-m", *words)


def _sim(settings: Settings) -> Service:
    return Service(
        name="engine",
        argv=python(
            *("sim", "--host", HOST, "--port", str(settings.port("engine"))),
            *("--control-port", str(settings.port("engine-control")), "--model", SIM_MODEL),
            *("--self-load", str(SIM_REQUESTS_PER_SECOND)),
        ),
        url=settings.url("engine"),
        ready_path="/health",
    )


def _rag(settings: Settings, selection: Selection, sentence_model: Path) -> Service:
    """The reference RAG service; its stages can be slowed and failed by POST /faults on loopback."""
    model = SIM_MODEL if selection.engine == "sim" else vllm_cpu.SERVED_MODEL
    return Service(
        name="rag",
        argv=python(
            *("rag", "--listen", f"{HOST}:{settings.port('rag')}", "--engine", settings.url("engine")),
            *("--model", model, "--model-dir", str(sentence_model)),
            *("--data-dir", str(settings.data_dir / "rag"), "--faults"),
        ),
        url=settings.url("rag"),
        ready_path="/-/ready",
        env=traces.sender_env(settings, RAG_SERVICE),
        ready_timeout_seconds=180.0,
    )


def receiver(settings: Settings) -> Service:
    """The local webhook receiver: what was notified goes to a file."""
    return Service(
        name="receiver",
        argv=python(
            *("inferwatch.stack.receiver", "--port", str(settings.port("receiver"))),
            *("--file", str(settings.notifications_file)),
        ),
        url=settings.url("receiver"),
        ready_path="/-/healthy",
    )


def _exporter_engine(settings: Settings) -> Service:
    config = settings.exporter_config
    return Service(
        name="exporter-engine",
        argv=python(
            *("exporters", "engine", "--listen", f"{HOST}:{settings.port('exporter-engine')}"),
            *("--config", str(config)),
        ),
        url=settings.url("exporter-engine"),
        ready_path="/-/ready",
        config_files=(config,),
    )


def _exporter_canary(settings: Settings) -> Service:
    config = settings.exporter_config
    return Service(
        name="exporter-canary",
        argv=python(
            *("exporters", "canary", "--listen", f"{HOST}:{settings.port('exporter-canary')}"),
            *("--config", str(config), "--spec", str(settings.spec_path)),
            *("--targets", str(settings.targets_file)),
        ),
        url=settings.url("exporter-canary"),
        ready_path="/-/ready",
        config_files=(config, settings.spec_path),
    )


def _exporter_node(settings: Settings) -> Service:
    return Service(
        name="exporter-node",
        argv=python(
            *("exporters", "node", "--listen", f"{HOST}:{settings.port('exporter-node')}"),
            *("--spec", str(settings.spec_path)),
        ),
        url=settings.url("exporter-node"),
        ready_path="/-/ready",
        config_files=(settings.spec_path,),
    )


def _exporter_drift(settings: Settings) -> Service:
    config = settings.drift_config
    return Service(
        name="exporter-drift",
        argv=python(
            *("exporters", "drift", "--listen", f"{HOST}:{settings.port('exporter-drift')}"),
            *("--config", str(config), "--spec", str(settings.spec_path)),
        ),
        url=settings.url("exporter-drift"),
        ready_path="/-/ready",
        config_files=(config, settings.spec_path),
    )


def alertmanager(settings: Settings, binary: Path) -> Service:
    """Alertmanager on loopback, without a cluster."""
    config = settings.alertmanager_config
    return Service(
        name="alertmanager",
        argv=(
            str(binary),
            f"--config.file={config}",
            f"--storage.path={settings.data_dir / 'alertmanager'}",
            f"--web.listen-address={HOST}:{settings.port('alertmanager')}",
            f"--web.external-url={settings.url('alertmanager')}",
            "--cluster.listen-address=",
        ),
        url=settings.url("alertmanager"),
        ready_path="/-/ready",
        config_files=(config,),
        reload_path="/-/reload",
    )


def prometheus(spec: Spec, settings: Settings, binary: Path, rules: Path) -> Service:
    """Prometheus on loopback; *rules* is the folder whose change needs a reload."""
    config = settings.prometheus_config
    return Service(
        name="prometheus",
        argv=(
            str(binary),
            f"--config.file={config}",
            f"--storage.tsdb.path={settings.data_dir / 'prometheus'}",
            f"--storage.tsdb.retention.time={retention_days(spec):g}d",
            f"--web.listen-address={HOST}:{settings.port('prometheus')}",
            f"--web.external-url={settings.url('prometheus')}",
            "--web.enable-lifecycle",
            "--enable-feature=exemplar-storage",
        ),
        url=settings.url("prometheus"),
        ready_path="/-/ready",
        config_files=(config, *sorted(rules.glob("*.yaml"))),
        reload_path="/-/reload",
        last=True,
    )


def _exporter_analysis(settings: Settings) -> Service:
    return Service(
        name="exporter-analysis",
        argv=python(
            *("exporters", "analysis", "--listen", f"{HOST}:{settings.port('exporter-analysis')}"),
            *("--prometheus", settings.url("prometheus"), "--spec", str(settings.spec_path)),
        ),
        url=settings.url("exporter-analysis"),
        ready_path="/-/healthy",
        config_files=(settings.spec_path,),
    )


def _dashboards(spec: Spec, settings: Settings) -> Service:
    folder = settings.root / "dashboards" / "json"
    runbooks = settings.root / "alerts" / "runbooks"
    return Service(
        name="dashboards",
        argv=python(
            *("inferwatch.render", "--prometheus", settings.url("prometheus")),
            *("--port", str(settings.port("dashboards")), "--dashboards", str(folder)),
            *("--runbooks", str(runbooks), "--scrape-seconds", f"{spec.intervals.scrape_seconds:.0f}"),
        ),
        url=settings.url("dashboards"),
        ready_path="/-/healthy",
    )
