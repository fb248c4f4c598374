"""Locust users that time streams truthfully. Import the class to run into a locustfile, or use ours.

Locust spawns and stops them and shows their numbers live; what is measured and kept is in our own records,
because Locust's response times are rounded and, for streams, stop at the headers.
"""

import itertools
import logging
import os
from pathlib import Path
from typing import Any, ClassVar

import gevent
from gevent.event import Event
from locust import User, task
from locust.exception import StopUser
from locust.runners import MasterRunner, WorkerRunner

from loadtests.clockprobe import ClockProbe, answer_workers
from loadtests.clocks import write_clock
from loadtests.driver import Driver
from loadtests.exits import CRASHED, NOT_OVER
from loadtests.plan import Endpoint, read_plan
from loadtests.records import RequestRecord

_PARENT_CHECK_S = 1.0
_WORKER_CHECK_S, _WORKER_CHECKS = 1.0, 5  # after the 3 s without a sign of life that Locust calls missing
_log = logging.getLogger(__name__)


class RequestFailed(Exception):
    """What Locust groups failures by: our error kind and the server's type, never the message."""


class LoadRun:
    """Binds one `Driver` to a Locust environment; the locustfile makes it, users find it as `environment.load_run`."""

    def __init__(self, environment: Any, plan_path: Path, folder: Path) -> None:
        self.plan = read_plan(plan_path)
        self.slots = itertools.count()
        self._environment = environment
        self._folder = folder
        self._driver: Driver | None = None
        self._users = 0
        self._begun = self._concluding = False
        self._done: set[int] = set()
        self._probe: ClockProbe | None = None
        self.ready = Event()

    @property
    def driver(self) -> Driver:
        """The driver of this process, made on first use, when Locust has told a worker its number."""
        if self._driver is None:
            runner = self._environment.runner
            worker = max(int(getattr(runner, "worker_index", 0) or 0), 0)
            self._driver = Driver(self.plan, self._folder, self._tell_locust, worker, self.plan.processes)
        return self._driver

    def listen(self) -> None:
        """Hear from Locust: all users are there, one of them failed, the end; on a master, from the workers."""
        events = self._environment.events
        events.spawning_complete.add_listener(lambda **_: self._spawned())
        events.user_error.add_listener(lambda **_: self._crashed())
        events.quitting.add_listener(lambda **_: self.finish())
        runner = self._environment.runner
        gevent.spawn(self._watch_parent, os.getppid())
        if isinstance(runner, MasterRunner):
            runner.register_message("load_done", self._worker_done)
            answer_workers(runner)
            gevent.spawn(self._watch_workers, runner)
        elif isinstance(runner, WorkerRunner):
            self._probe = ClockProbe(runner)

    def _watch_parent(self, parent: int) -> None:
        """Load whose starter is gone would go on with nobody to read it or to stop it: end it."""
        while os.getppid() == parent:
            gevent.sleep(_PARENT_CHECK_S)
        self._environment.runner.quit()

    def _watch_workers(self, runner: MasterRunner) -> None:
        """A worker that died or left takes its share of the load with it, and would be waited for for ever: a failed run."""
        came = lost = 0
        while lost < _WORKER_CHECKS:
            gevent.sleep(_WORKER_CHECK_S)
            came = max(came, len(runner.clients))
            lost = lost + 1 if runner.clients.missing or len(runner.clients) < came else 0
        _log.error("a load worker died, hangs or was ended; its part of the load was not sent")
        self._crashed()

    def _spawned(self) -> None:
        """Start the clock, in every process that has users (a master has none)."""
        if not self._begun and not self._is_master:
            self._begun = True
            gevent.spawn(self._begin).link_exception(lambda _: self._crashed())

    def _begin(self) -> None:
        if self._probe is not None:
            write_clock(self._probe.measure(), self._folder)
        self.driver.begin()
        self.ready.set()

    def _worker_done(self, msg: Any, **_: Any) -> None:
        self._done.add(msg.data["worker"])
        if msg.data["crashed"]:
            self._environment.process_exit_code = CRASHED
            self._environment.runner.quit()
        elif len(self._done) == self.plan.processes:
            self._over()
            self._environment.runner.quit()

    def _crashed(self) -> None:
        """Our own fault, not the server's: nothing measured so far can be trusted, end now and say so."""
        self._environment.process_exit_code = CRASHED
        gevent.spawn(self._report_done, crashed=True)

    def _over(self) -> None:
        """The plan was carried out to its end: only from here on is an end of this process the planned one."""
        if self._environment.process_exit_code == NOT_OVER:
            self._environment.process_exit_code = 0

    def _report_done(self, *, crashed: bool) -> None:
        runner = self._environment.runner
        if not crashed:
            self._over()
        if isinstance(runner, WorkerRunner):
            runner.send_message("load_done", {"worker": runner.worker_index, "crashed": crashed})
        else:
            runner.quit()

    @property
    def _is_master(self) -> bool:
        return isinstance(self._environment.runner, MasterRunner)

    def user_came(self) -> int:
        """Count a user in; returns its slot."""
        self._users += 1
        return next(self.slots)

    def user_left(self) -> None:
        """Count a user out; after the last one the run drains and this process reports that it is done."""
        self._users -= 1
        if self._users == 0 and not self._concluding:
            self._concluding = True
            gevent.spawn(self._conclude)

    def finish(self) -> None:
        """Cut what is under way and close the files; at once. A driver that crashed makes the exit code 70."""
        self._concluding = True
        if self._driver is not None:
            self._driver.finish()
            if self._driver.crashed:
                self._environment.process_exit_code = CRASHED

    def _conclude(self) -> None:
        self.driver.drain()
        self.driver.finish()
        self._report_done(crashed=self.driver.crashed)

    def _tell_locust(self, record: RequestRecord) -> None:
        fire = self._environment.events.request.fire
        failed = RequestFailed(record.error_name) if record.outcome == "error" else None
        if record.outcome == "unfinished":
            return
        start = record.scheduled_s if record.sent_s is None else record.sent_s
        context = {"tenant": record.tenant, "lane": record.lane, "trace_id": record.trace_id}
        name = "aborted" if record.outcome == "aborted" else "total"
        fire(
            request_type=record.endpoint,
            name=name,
            response_time=(record.end_s - start) * 1e3,
            response_length=record.bytes_in,
            exception=failed,
            context=context,
        )
        if failed is None and record.ttft_s is not None:
            fire(
                request_type=record.endpoint,
                name="time to first token",
                response_time=record.ttft_s * 1e3,
                response_length=0,
                exception=None,
                context=context,
            )


class InferenceUser(User):
    """A user of the plan's mix. Arrival decides how it behaves: one client of a closed loop, or the whole open loop."""

    abstract = True
    endpoint: ClassVar[Endpoint | None] = None

    @task
    def follow_the_plan(self) -> None:
        """Send requests until the plan is over, then stop."""
        run: LoadRun = self.environment.load_run
        run.ready.wait()
        slot = run.user_came()
        try:
            if run.plan.arrival.kind == "closed":
                run.driver.run_closed(slot, self.endpoint)
            elif slot == 0:
                run.driver.run_open(self.endpoint)
        finally:
            run.user_left()
        raise StopUser


class MixUser(InferenceUser):
    """Requests by the plan's mix of endpoints."""


class ChatUser(InferenceUser):
    """Chat completions only."""

    endpoint = "chat"


class CompletionUser(InferenceUser):
    """Completions only."""

    endpoint = "completions"


class EmbeddingUser(InferenceUser):
    """Embeddings only."""

    endpoint = "embeddings"


class RagUser(InferenceUser):
    """Questions to a RAG service only."""

    endpoint = "rag"
