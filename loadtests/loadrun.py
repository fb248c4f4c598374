"""One load process's part of a run, bound to Locust: begin together, drain, hand over, and say how it ended."""

import itertools
import json
import logging
import os
import signal
import socket
from functools import cached_property
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from locust.runners import MasterRunner, WorkerRunner

from loadtests.clockprobe import ClockProbe, answer_workers
from loadtests.clocks import WorkerClock, write_clock
from loadtests.driver import Driver
from loadtests.exits import CRASHED, NOT_OVER
from loadtests.handover import FileSender, receive_files
from loadtests.plan import LoadPlan, parse_plan
from loadtests.records import RequestRecord
from loadtests.startline import monotonic, time_zero

_PARENT_CHECK_S = 1.0
_WORKER_CHECK_S, _WORKER_CHECKS = 1.0, 5  # after the 3 s without a sign of life that Locust calls missing
_GATHER_S, _GATHER_CHECK_S = 8.0, 0.05  # less than `run.LoadProcess.stop` waits before it kills
_log = logging.getLogger(__name__)


class RequestFailed(Exception):
    """What Locust groups failures by: our error kind and the server's type, never the message."""


class LoadRun:
    """Binds one `Driver` to a Locust environment; the locustfile makes it, users find it as `environment.load_run`.

    The environment's options hold `plan_text`, the plan as JSON: Locust gives a worker its master's options with the
    order to spawn users. With *sends*, this is a worker with a folder of its own, whose files go to the master.
    """

    def __init__(self, environment: Any, folder: Path, *, sends: bool = False) -> None:
        self.slots = itertools.count()
        self._environment = environment
        self._folder = folder
        self._sends = sends
        self._driver: Driver | None = None
        self._users = 0
        self._started = self._begun = self._concluding = self._cut = False
        self._ended: dict[int, int] = {}
        self._probe: ClockProbe | None = None
        self._clock: WorkerClock | None = None
        self._sender: FileSender | None = None
        self.ready = Event()

    @cached_property
    def plan(self) -> LoadPlan:
        """The plan; on a worker, known once it was told to spawn users."""
        return parse_plan(json.loads(self._environment.parsed_options.plan_text))

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
        events.test_start.add_listener(lambda **_: setattr(self, "_started", True))
        events.spawning_complete.add_listener(lambda **_: self._spawned())
        events.user_error.add_listener(lambda **_: self._crashed())
        events.quitting.add_listener(lambda **_: self.finish())
        gevent.spawn(self._watch_parent, os.getppid())
        runner = self._environment.runner
        if isinstance(runner, MasterRunner):
            runner.register_message("load_done", self._worker_done)
            answer_workers(runner, self._decide_begin_s)
            receive_files(runner, self._folder)
            events.worker_connect.add_listener(lambda client_id, **_: self._worker_came(client_id))
            gevent.spawn(self._watch_workers, runner)
        elif isinstance(runner, WorkerRunner):
            runner.register_message("load_stop", lambda **_: self._stop())
            self._probe = ClockProbe(runner)
            self._sender = FileSender(runner) if self._sends else None

    def _watch_parent(self, parent: int) -> None:
        """Load whose starter is gone would go on with nobody to read it or to stop it: end it."""
        while os.getppid() == parent:
            gevent.sleep(_PARENT_CHECK_S)
        os.kill(os.getpid(), signal.SIGTERM)

    def _worker_came(self, client_id: str) -> None:
        """Each worker sends the share of its number: one more, or one instead of another, has none."""
        number = self._environment.runner.get_worker_index(client_id) + 1
        if number > self.plan.processes:
            _log.error(
                "worker number %d came, the run is of %d; none can be replaced", number, self.plan.processes
            )
            self._crashed()

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
            gevent.spawn(self._begin).link_exception(self._broke)

    def _decide_begin_s(self) -> float:
        on_the_minute = self.plan.arrival.on_the_minute
        return monotonic(time_zero(alone=not self._is_master, on_the_minute=on_the_minute))

    def _begin(self) -> None:
        if self._probe is None:
            begin_s = self._decide_begin_s()
        else:
            self._clock = self._probe.measure()
            write_clock(self._clock, self._folder)
            begin_s = self._probe.begin_s - (0.0 if self._clock.same_host else self._clock.offset_s)
        self.driver.begin(begin_s)
        self.ready.set()
        seconds = self.plan.arrival.duration_s
        if self.plan.arrival.kind == "closed" and seconds is not None:
            # Clients of a closed loop wait for their answers; the plan is over when its time is.
            gevent.spawn_later(seconds, self._start_conclusion)

    def _worker_done(self, msg: Any, **_: Any) -> None:
        self._ended[msg.data["worker"]] = code = msg.data["code"]
        if code == CRASHED:
            _log.error("worker %(worker)d on %(host)s: %(why)s", msg.data)
            self._end(CRASHED)
        elif self._all_ended and NOT_OVER not in self._ended.values():
            self._end(0)

    @property
    def _all_ended(self) -> bool:
        return len(self._ended) == self.plan.processes

    def _crashed(self, why: str = "") -> None:
        """Our own fault, not the server's: nothing measured so far can be trusted, end now and say so."""
        gevent.spawn(self._end, CRASHED, why)

    def _broke(self, greenlet: Any) -> None:
        """The same, of a greenlet of ours; what it raised is in this process's log, and told to the master."""
        self._crashed(f"{type(greenlet.exception).__name__}: {greenlet.exception}")

    def _end(self, code: int, why: str = "") -> None:
        """End with *code*, or tell the master that this worker does; a crash stands."""
        runner = self._environment.runner
        if self._environment.process_exit_code != CRASHED:
            self._environment.process_exit_code = code
        if isinstance(runner, WorkerRunner):
            code = self._environment.process_exit_code
            end = {"worker": runner.worker_index, "code": code, "host": socket.gethostname(), "why": why}
            runner.send_message("load_done", end)
        elif not self._started:
            os.kill(os.getpid(), signal.SIGTERM)  # Locust waits for workers, and hears nothing else meanwhile
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
        if self._users == 0:
            self._start_conclusion()

    def finish(self) -> None:
        """Cut what is under way and close the files; at once. A driver that crashed makes the exit code 70."""
        if self._is_master:
            self._gather()
        self._concluding = True
        if self._driver is not None:
            self._driver.finish()
            if self._driver.crashed:
                self._environment.process_exit_code = CRASHED

    def _gather(self) -> None:
        """A run ended before its time: let the workers bring what they have."""
        runner = self._environment.runner
        if self._environment.process_exit_code != NOT_OVER:
            return
        runner.send_message("load_stop")
        with gevent.Timeout(_GATHER_S, False):
            while runner.clients and not self._all_ended:
                gevent.sleep(_GATHER_CHECK_S)

    def _stop(self) -> None:
        """The master ends the run: conclude now, or sooner if that is under way."""
        self._cut = True
        if self._driver is not None:
            self._driver.finish()
        self._start_conclusion()

    def _start_conclusion(self) -> None:
        if not self._concluding:
            self._concluding = True
            gevent.spawn(self._conclude).link_exception(self._broke)

    def _conclude(self) -> None:
        crashed = False
        if self._driver is not None:
            self._driver.drain()
            self._driver.finish()
            crashed = self._driver.crashed
        if self._probe is not None and self._clock is not None:
            self._clock = self._clock.until(self._probe.measure())
            write_clock(self._clock, self._folder)
            if self._sender is not None:
                self._sender.send(self._folder, self._clock.worker)
        self._end(CRASHED if crashed else NOT_OVER if self._cut else 0)

    def _tell_locust(self, record: RequestRecord) -> None:
        fire = self._environment.events.request.fire
        failed = RequestFailed(record.error_name) if record.outcome == "error" else None
        if record.outcome == "unfinished":
            return
        start = record.started_s if record.sent_s is None else record.sent_s
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
