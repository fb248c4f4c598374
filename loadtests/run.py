"""A plan -> Locust in its own process -> records on disk -> what was measured. Imports neither locust nor gevent."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from loadtests.clocks import aligned, read_clocks
from loadtests.exits import NOT_OVER
from loadtests.launch import client_command, failure, start
from loadtests.plan import LoadPlan, read_plan, write_plan
from loadtests.records import RequestRecord, read_jsonl, read_parquet, write_parquet

_PLAN, _PARQUET, _RUN = "plan.json", "records.parquet", "run.json"
_STOP_GRACE_S = 10.0


class LoadError(RuntimeError):
    """The load client could not be started or died; the message names its log."""


@dataclass(frozen=True)
class LoadResult:
    """What a run left in *folder*. Times are Unix seconds. `exit_code` is the client's; 0 means it ran as planned.

    `stopped` is true when the run was ended, from here or from outside, before its plan was over.
    """

    folder: Path
    plan: LoadPlan
    began_s: float
    ended_s: float
    exit_code: int
    stopped: bool

    @cached_property
    def records(self) -> tuple[RequestRecord, ...]:
        """Every attempt, in the order of its schedule."""
        return tuple(sorted(read_records(self.folder), key=lambda record: record.scheduled_s))

    @cached_property
    def health(self) -> tuple[dict[str, Any], ...]:
        """The client's own samples, one a second and worker; see `loadtests.recorder.Recorder`."""
        return tuple(read_health(self.folder))


def refuse_used(folder: Path) -> None:
    """Make *folder*; raises LoadError when it holds an earlier run, whose records would mix with the new one's."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("records-*.jsonl")):
        raise LoadError(f"{folder}: holds an earlier run; choose another folder")


def read_records(folder: Path) -> Iterator[RequestRecord]:
    """Records of a run's folder: from Parquet when it was written, else from the workers' JSONL files.

    All stamps are on one monotonic clock: workers of other hosts were moved onto the master's.
    """
    parquet = folder / _PARQUET
    if parquet.exists():
        yield from read_parquet(parquet)
        return
    clocks = read_clocks(folder)
    for path in sorted(folder.glob("records-*.jsonl")):
        yield from aligned(read_jsonl(path), clocks)


def read_health(folder: Path) -> Iterator[dict[str, Any]]:
    """Client samples of a run's folder; a torn last line is left out."""
    for path in sorted(folder.glob("client-*.jsonl")):
        for line in path.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                yield json.loads(line)


def read_result(folder: Path) -> LoadResult:
    """Open an earlier run; raises LoadError when *folder* holds none."""
    try:
        run = json.loads((folder / _RUN).read_text(encoding="utf-8"))
        return LoadResult(folder, read_plan(folder / _PLAN), **run)
    except (OSError, TypeError, ValueError) as error:
        raise LoadError(f"{folder}: not the folder of a finished load run: {error}") from error


class LoadProcess:
    """A load run under way. Start it, do other things, then `wait` for its end or `stop` it at once."""

    def __init__(self, plan: LoadPlan, folder: Path, listen: tuple[str, int] | None = None) -> None:
        """Write the plan and start the client; *folder* is made and must hold no earlier run.

        With *listen*, (host, port), the plan's processes are not started here: the client waits there until so many
        workers have joined, and *folder* gets their records when they are done.
        """
        refuse_used(folder)
        write_plan(plan, folder / _PLAN)
        self.plan = plan
        self.folder = folder
        self.listen = listen
        self._stopped = False
        self.began_s = time.time()
        self._process = start(client_command(plan, folder / _PLAN, folder, listen), folder)

    @property
    def pid(self) -> int:
        """Process id of the client (of its master, with several processes)."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """True while the client lives."""
        return self._process.poll() is None

    def wait(self, timeout_s: float | None = None) -> LoadResult:
        """Wait for the end of the plan, or of a client that was ended before it (`stopped`).

        Raises LoadError when the client failed, TimeoutError when it is late.
        """
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the load run in {self.folder} is not over after {timeout_s} s") from None
        return self._finish()

    def stop(self) -> LoadResult:
        """End the run at once: answers under way are cut and recorded as unfinished."""
        if self.running:
            self._stopped = True
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
        return self._finish()

    def _finish(self) -> LoadResult:
        code = self._process.returncode
        if code not in (0, NOT_OVER) and not self._stopped:
            raise LoadError(failure(code, self.folder))
        run = {
            "began_s": self.began_s,
            "ended_s": time.time(),
            "exit_code": code,
            "stopped": code != 0,
        }
        (self.folder / _RUN).write_text(json.dumps(run) + "\n", encoding="utf-8")
        write_parquet(read_records(self.folder), self.folder / _PARQUET)
        return read_result(self.folder)


def run_load(
    plan: LoadPlan,
    folder: Path,
    *,
    on_tick: Callable[[LoadProcess], bool] | None = None,
    tick_s: float = 0.5,
    listen: tuple[str, int] | None = None,
) -> LoadResult:
    """Run *plan* to its end, records in *folder*; *listen* as for `LoadProcess`.

    *on_tick* is called every *tick_s* seconds; when it returns False the run is stopped at once. An exception
    in it (KeyboardInterrupt too) stops the run first. Raises LoadError.
    """
    process = LoadProcess(plan, folder, listen)
    try:
        while process.running:
            if on_tick is not None and not on_tick(process):
                return process.stop()
            time.sleep(tick_s if on_tick else 0.1)
    except BaseException:
        process.stop()
        raise
    return process.wait()
