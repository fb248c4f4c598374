"""Recordings -> a stack of their own: a player for each, exporter, Prometheus, Alertmanager, receiver."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from exporters.engine.labels import LabelCache
from exporters.engine.registry import ADAPTERS
from exporters.engine.translate import translate
from inferwatch.replay.recording import Recording
from inferwatch.scenarios import derive
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.row import Row
from inferwatch.stack import backfill, binaries, config, files, launcher, services
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from inferwatch.stack.state import Selection
from slo import spec as slo_spec
from slo.names import labels
from slo.spec import Spec

FIRST_PLAYER_PORT = 110
MAX_SERIES = 100_000
STARTED = ("receiver", "exporter-engine", "alertmanager", "prometheus")
JOBS = (labels.JOB_ENGINE, labels.JOB_ENGINE_EXPORTER, labels.JOB_PROMETHEUS, labels.JOB_ALERTMANAGER)
"""No canary: a recording cannot be asked."""


@dataclass(frozen=True)
class Stand:
    """The stack of a replay: recordings, their ports and the spec with one service each."""

    settings: Settings
    spec: Spec
    recordings: Sequence[Recording]
    urls: Sequence[tuple[str, str]]
    """Engine and control URL of each recording."""


def planned(settings: Settings, recordings: Sequence[Recording]) -> Stand:
    """Return the stack for *recordings*, nothing started."""
    rows = [Row(recording.name, Nothing(None)) for recording in recordings]
    first = settings.base_port + FIRST_PLAYER_PORT
    urls = [
        (f"http://{HOST}:{first + 2 * number}", f"http://{HOST}:{first + 2 * number + 1}")
        for number in range(len(recordings))
    ]
    return Stand(settings, derive.derived(slo_spec.load(settings.spec_path), rows), recordings, urls)


def raise_up(stand: Stand, folder: Path, history_rate: float, reporter: Reporter) -> None:
    """Start everything, after a past of *history_rate* requests per second was written; nobody plays yet."""
    settings = stand.settings
    selection = Selection("urls", tuple(url for url, _ in stand.urls), stand.recordings[0].name)
    _write_files(stand, selection)
    paths = {tool: binaries.resolve(tool, settings, reporter).path for tool in ("prometheus", "alertmanager")}
    stack = {s.name: s for s in services.stack_services(stand.spec, settings, selection, paths, None)}
    wanted = [*_players(stand, folder), *(stack[name] for name in STARTED)]
    launcher.reconcile(settings, selection, [s for s in wanted if not s.last], reporter)
    if history_rate:
        promtool = binaries.resolve("promtool", settings, reporter).path
        past = [
            backfill.ServiceHistory(recording.name, model(recording), history_rate)
            for recording in stand.recordings
        ]
        backfill.backfill(stand.spec, settings.data_dir / "prometheus", past, promtool)
    launcher.reconcile(settings, selection, wanted, reporter)


def _players(stand: Stand, folder: Path) -> list[Service]:
    return [
        Service(
            name=f"player-{recording.name}",
            argv=services.python(
                *("inferwatch.replay.player", "--folder", str(folder.resolve()), "--name", recording.name),
                *("--port", url.rpartition(":")[2], "--control-port", control.rpartition(":")[2]),
            ),
            url=control,
            ready_path="/-/ready",
        )
        for recording, (url, control) in zip(stand.recordings, stand.urls, strict=True)
    ]


def _write_files(stand: Stand, selection: Selection) -> None:
    settings = stand.settings
    files.write_all(stand.spec, settings, selection)
    rules = settings.run_dir / "rules"
    for name, text in derive.rule_files(stand.spec).items():
        config.write_text(rules / name, text)
    prometheus = config.prometheus_config(stand.spec, settings)
    prometheus["rule_files"] = [f"{rules}/*.yaml"]
    prometheus["scrape_configs"] = [j for j in prometheus["scrape_configs"] if j["job_name"] in JOBS]
    config.write_yaml(settings.prometheus_config, prometheus)
    # Nobody looks before the play begins, so that no frozen first page goes into a window.
    write_targets(stand, ())


def model(recording: Recording) -> str:
    """The model that the recorded engine serves, as the exporter publishes it; StackError where no page says."""
    for page in recording.pages:
        body = page.text()
        for adapter in ADAPTERS if body else ():
            reading = translate(body, adapter, LabelCache(), "unknown", MAX_SERIES)
            if reading.model is not None:
                return reading.model.decode()
    raise StackError(f"recording {recording.name!r} names no model; leave out --history-rate")


def write_targets(stand: Stand, playing: Sequence[Recording]) -> None:
    """Put exactly the engines of *playing* into service discovery."""
    groups = [
        {"targets": [url], "labels": {labels.SERVICE: recording.name}}
        for recording, (url, _) in zip(stand.recordings, stand.urls, strict=True)
        if recording in playing
    ]
    config.write_json(stand.settings.targets_file, groups)
