"""A folder of recordings -> all played side by side on a stack of their own, and what fired there."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import urllib3

from inferwatch.loop import notices
from inferwatch.promapi import Prometheus
from inferwatch.replay.recording import read
from inferwatch.replay.stand import Stand, planned, raise_up, write_targets
from inferwatch.stack import launcher
from inferwatch.stack.errors import StackError
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from slo.names import engine, labels

FIRST_PROBE_SECONDS = 60.0
LOOK_SECONDS = 0.5

LabelSet = tuple[tuple[str, str], ...]
Sightings = dict[LabelSet, tuple[float, float]]
"""Labels of an alert -> Unix seconds when it was first and last seen firing."""


@dataclass(frozen=True)
class Fired:
    """
    An alert that fired; seconds count from the recording's start.

    Attributes:
        until_seconds: when it last fired; the recording's end may have cut it short.
        delivered_seconds: None where nothing was delivered, because another alert silenced it or no time was left.
    """

    alert: str
    severity: str
    labels: dict[str, str]
    after_seconds: float
    until_seconds: float
    delivered_seconds: float | None


def run(settings: Settings, folder: Path, history_rate: float, reporter: Reporter) -> dict[str, Any]:
    """
    Play every recording of *folder* and return what fired: {"recordings": [{"name", "alerts", ...}]}.

    *history_rate*: requests per second of a healthy past that is written before; 0: a fresh install.
    Everything that was started is ended again. Raises StackError.
    """
    recordings = read(folder)
    stand = planned(settings, recordings)
    launcher.down(settings, reporter)
    for place in (settings.data_dir, settings.config_dir, settings.run_dir / "rules"):
        shutil.rmtree(place, ignore_errors=True)
    settings.notifications_file.unlink(missing_ok=True)
    try:
        raise_up(stand, folder, history_rate, reporter)
        started, seen = _play(stand, reporter)
        return _result(stand, started, seen, history_rate)
    finally:
        launcher.down(settings, reporter)


def _play(stand: Stand, reporter: Reporter) -> tuple[float, Sightings]:
    """Begin once each engine was probed; each leaves service discovery when its recording ends."""
    seen: Sightings = {}
    with Prometheus(stand.settings.url("prometheus")) as client:
        write_targets(stand, stand.recordings)
        _await_probes(client, stand, reporter)
        for _, control in stand.urls:
            urllib3.request("POST", f"{control}/play", timeout=10.0, retries=False)
        started = time.time()
        playing = list(stand.recordings)
        while playing:
            time.sleep(LOOK_SECONDS)
            _look(client, {recording.name for recording in playing}, seen)
            over = [recording for recording in playing if time.time() >= started + recording.seconds]
            if over:
                playing = [recording for recording in playing if recording not in over]
                write_targets(stand, playing)
            reporter.progress(f"playing {', '.join(recording.name for recording in playing)}")
    # What fired last is delivered after its group's wait.
    time.sleep(stand.spec.intervals.group_wait_seconds + stand.spec.intervals.evaluation_seconds)
    return started, seen


def _look(client: Prometheus, playing: set[str], seen: Sightings) -> None:
    """Prometheus writes no ALERTS series in a group's first two evaluations; its API lists alerts from the first."""
    now = time.time()
    for alert in client.alerts():
        if alert.state == "firing" and alert.labels.get(labels.SERVICE) in playing:
            key = tuple(sorted(alert.labels.items()))
            seen[key] = (seen.get(key, (now, now))[0], now)


def _await_probes(client: Prometheus, stand: Stand, reporter: Reporter) -> None:
    deadline = time.monotonic() + FIRST_PROBE_SECONDS
    with reporter.task("waiting for the first probe of each recorded engine"):
        while len(client.query(f"{engine.PROBE_SUCCESS} == 1")) < len(stand.recordings):
            if time.monotonic() > deadline:
                log = stand.settings.logs_dir / "exporter-engine.log"
                raise StackError(f"not every recorded engine could be probed; see {log}")
            time.sleep(0.2)


def _result(
    stand: Stand, started: float, seen: Mapping[LabelSet, tuple[float, float]], history_rate: float
) -> dict[str, Any]:
    delivered = notices.read(stand.settings.notifications_file)
    return {
        "history_requests_per_second": history_rate,
        "recordings": [
            {
                "name": recording.name,
                "seconds": round(recording.seconds, 1),
                "pages": len(recording.pages),
                "alerts": [asdict(one) for one in fired(recording.name, started, seen, delivered)],
            }
            for recording in stand.recordings
        ],
    }


def fired(
    name: str,
    started: float,
    seen: Mapping[LabelSet, tuple[float, float]],
    delivered: Sequence[notices.Notice],
) -> list[Fired]:
    """Return the alerts of the recording *name*, which began at Unix seconds *started*, in order of time."""
    found = []
    for key, (first, last) in seen.items():
        own = dict(key)
        if own.get(labels.SERVICE) != name:
            continue
        came = next((n.received_at for n in delivered if n.labels == own and n.status == "firing"), None)
        found.append(
            Fired(
                own.pop("alertname"),
                own.pop(labels.SEVERITY),
                {k: v for k, v in own.items() if k != labels.SERVICE},
                round(first - started, 1),
                round(last - started, 1),
                None if came is None else round(came - started, 1),
            )
        )
    return sorted(found, key=lambda one: (one.after_seconds, one.alert))
