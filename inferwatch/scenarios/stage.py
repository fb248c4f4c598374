"""One Prometheus with its Alertmanager, receiver, exporters and engines, and the handles that faults need."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import urllib3
import yaml

from inferwatch.loop import notices
from inferwatch.loop.notices import Notice
from inferwatch.scenarios.recordings import Recordings
from inferwatch.scenarios.row import Row, StageName
from inferwatch.stack import config, processes, state
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import Settings
from slo.names import labels
from slo.spec import Spec

ANSWER_TIMEOUT_SECONDS = 30.0
PORTS_A_STAGE = 300


@dataclass(frozen=True)
class Engine:
    """An engine: where it serves, and where its scenarios are switched if it is a simulated one."""

    url: str
    control_url: str


@dataclass
class Stage:
    """
    A running stage; processes are recorded in its run folder, so that `launcher.down` ends them.

    Attributes:
        spec: with one service for each row.
        services: name -> how to start it.
        engines: name of a row -> its engines.
        recordings: what the recorded things show, in the stage that has some.
        holds: alert -> what is said of its hold, where that is shorter here than it ships.
        first_env: variables of a service before a fault changed them.
        began_at: Unix seconds when Prometheus began to read live series, after the written history.
        ready_at: Unix seconds from which faults may begin.
    """

    name: StageName
    settings: Settings
    spec: Spec
    rows: Sequence[Row]
    services: dict[str, Service]
    engines: Mapping[str, tuple[Engine, ...]]
    recordings: Recordings | None = None
    holds: Mapping[str, str] = field(default_factory=dict)
    began_at: float = 0.0
    ready_at: float = 0.0
    unwatched: set[str] = field(default_factory=set)
    first_env: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def rules_dir(self) -> Path:
        """Where this stage's rules stand."""
        return self.settings.run_dir / "rules"

    def notices(self) -> list[Notice]:
        """All that was delivered so far, oldest first."""
        return notices.read(self.settings.notifications_file)

    def switch(self, row: str, scenario: str, params: Mapping[str, float]) -> None:
        """Switch the first engine of a row; StackError when it refuses."""
        answer = _post(
            f"{self.engines[row][0].control_url}/sim/scenario", {"name": scenario, "params": dict(params)}
        )
        if answer.status != 200:
            raise StackError(f"{row}: scenario {scenario}: {answer.data.decode()[:300]}")

    def set_watched(self, row: str, watched: bool) -> None:
        """Put a row's first engine into service discovery, or take it out."""
        if watched:
            self.unwatched.discard(row)
        else:
            self.unwatched.add(row)
        self.write_targets()

    @property
    def direct_file(self) -> Path:
        """The engines that Prometheus scrapes itself."""
        return self.settings.run_dir / "direct.json"

    def write_targets(self) -> None:
        """Write the file_sd files: one group a service; HOST:PORT where there is no exporter between."""
        direct = {row.name for row in self.rows if row.direct}
        through, itself = [], []
        for row, engines in self.engines.items():
            urls = [engine.url for engine in engines[1 if row in self.unwatched else 0 :]]
            if row in direct:
                hosts = [url.removeprefix("http://") for url in urls]
                itself.append({"targets": hosts, "labels": {labels.SERVICE: row}})
            else:
                through.append({"targets": urls, "labels": {labels.SERVICE: row}})
        config.write_json(self.settings.targets_file, through)
        config.write_json(self.direct_file, itself)

    def signal(self, service: str, number: int) -> None:
        """Send a signal to a process of this stage and wait until it is gone; StackError when it is not running."""
        record = self._record(service)
        process = processes.find(record)
        if process is None:
            raise StackError(f"{service} does not run any more; the end of {record.log} says why")
        os.kill(process.pid, number)
        deadline = time.monotonic() + processes.TERM_GRACE_SECONDS
        while processes.find(record) is not None:
            if time.monotonic() > deadline:
                raise StackError(f"{service} did not end by signal {number}; see {record.log}")
            time.sleep(0.02)

    def revive(self, service: str) -> None:
        """Start a process again that was ended, if it does not run; its readiness is not awaited."""
        now = state.load(self.settings.state_file)
        if processes.find(now.records[service]) is None:
            record = processes.start(self.services[service], self.settings.logs_dir)
            state.save(self.settings.state_file, replace(now, records={**now.records, service: record}))

    def reload(self, service: str, *, refused: bool = False) -> None:
        """Make a process read its configuration again; StackError unless it takes it, or refuses it where it must."""
        answer = _post(f"{self.services[service].url}/-/reload")
        if (answer.status >= 400) != refused:
            raise StackError(
                f"{service} answered HTTP {answer.status} to a reload: {answer.data.decode()[:300]}"
            )

    def set_limited_job(self, job: str | None) -> None:
        """Add a job that scrapes Prometheus itself with a limit of one sample, or remove it."""
        path = self.settings.prometheus_config
        content: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
        jobs = [entry for entry in content["scrape_configs"] if "sample_limit" not in entry]
        if job is not None:
            target = self.services["prometheus"].url.removeprefix("http://")
            jobs.append({"job_name": job, "sample_limit": 1, "static_configs": [{"targets": [target]}]})
        config.write_yaml(path, {**content, "scrape_configs": jobs})
        self.reload("prometheus")

    def _record(self, service: str) -> state.Record:
        return state.load(self.settings.state_file).records[service]


def _post(url: str, body: dict[str, Any] | None = None) -> urllib3.BaseHTTPResponse:
    """POST; StackError when nothing answers."""
    try:
        return urllib3.request("POST", url, json=body, timeout=ANSWER_TIMEOUT_SECONDS, retries=False)
    except urllib3.exceptions.HTTPError as error:
        raise StackError(f"{url} does not answer: {error}") from error
