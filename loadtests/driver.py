"""A plan -> requests at their times, in an open or a closed loop, with retries, drained or cut at the end."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
from gevent.pool import Group

from loadtests.client import Client
from loadtests.plan import Endpoint, LoadPlan
from loadtests.recorder import Recorder
from loadtests.records import RequestRecord
from loadtests.replay import trace_of
from loadtests.shapes import arrival_times, level_at
from loadtests.startline import SETTLE_S
from loadtests.timers import PreciseTimer, start_now
from loadtests.transport import now_ns
from loadtests.workload import Due, Prepared, Workload

_IDLE_CHECK_S = 0.02


class Driver:
    """The load of one worker process. `on_record` is told of every attempt after it was written.

    Life: `begin` starts the clock; users call `run_closed` or `run_open` and return when the plan is over;
    `drain` waits for answers still under way; `finish` ends what is left and closes the files.
    """

    def __init__(
        self,
        plan: LoadPlan,
        folder: Path,
        on_record: Callable[[RequestRecord], None],
        worker: int = 0,
        workers: int = 1,
    ) -> None:
        self.plan = plan
        self.closing = False
        self.crashed = False
        self._on_record = on_record
        self._worker, self._workers = worker, workers
        self._client = Client(plan, worker)
        self._work = Workload(plan, worker)
        self._recorder = Recorder(folder, worker)
        self._requests = Group()
        self._start_ns = 0
        self._left = _split(plan.max_requests, worker, workers)

    def begin(self, begin_s: float) -> None:
        """Wait for time zero of the plan, *begin_s* seconds on this host's monotonic clock."""
        self._start_ns = int(begin_s * 1e9)
        gevent.sleep(max(0.0, begin_s - SETTLE_S - now_ns() / 1e9))
        self._recorder.start()
        gevent.sleep(max(0.0, begin_s - now_ns() / 1e9))

    def run_closed(self, slot: int, endpoint: Endpoint | None = None) -> None:
        """Be client number *slot* of this worker: next request when the last was answered and thought over."""
        self._requests.add(gevent.getcurrent())
        arrival = self.plan.arrival
        place = slot * self._workers + self._worker
        while not self.closing and self._left != 0:
            level = level_at(arrival.segments, (now_ns() - self._start_ns) / 1e9)
            if level is None:
                return
            if place >= level:
                gevent.sleep(_IDLE_CHECK_S)
                continue
            self._count()
            record = self._issue(self._work.next(endpoint=endpoint), now_ns())
            if record.outcome == "unfinished":
                return
            if arrival.think_s:
                gevent.sleep(arrival.think_s)
            elif record.outcome == "error":
                gevent.sleep(_IDLE_CHECK_S)  # a refusing server must not turn the loop into a spin

    def run_open(self, endpoint: Endpoint | None = None) -> None:
        """Send each request of this worker's share when it is due, whatever became of the earlier ones."""
        timer = PreciseTimer()
        try:
            for due in self._schedule():
                if self.closing or self._left == 0:
                    return
                self._count()
                request = self._work.next(
                    due, endpoint
                )  # made before its time, so that making it delays nothing
                due_ns = self._start_ns + int(due.at_s * 1e9)
                timer.sleep_until(due_ns)
                if self.closing:
                    return  # the run was ended meanwhile, and its files with it
                sender = gevent.Greenlet(self._issue, request, due_ns)
                self._requests.add(sender)
                start_now(sender)
        finally:
            timer.close()

    def drain(self) -> None:
        """No new requests; wait until those under way are answered, at most `drain_s`."""
        self.closing = True
        deadline = now_ns() + int(self.plan.drain_s * 1e9)
        while self._recorder.in_flight and now_ns() < deadline:
            gevent.sleep(_IDLE_CHECK_S)

    def finish(self) -> None:
        """Cut what is still under way (recorded as unfinished) and close the files; safe to call twice."""
        self.closing = True
        self._requests.kill()
        self._recorder.close()
        self._client.close()

    def _count(self) -> None:
        self._recorder.due += 1
        if self._left is not None:
            self._left -= 1

    def _schedule(self) -> Iterator[Due]:
        """Each `workers`-th request of the plan: all workers draw the same ones, so their number changes no time."""
        arrival, mine, of = self.plan.arrival, self._worker, self._workers
        if arrival.kind == "trace":
            return itertools.islice(trace_of(arrival), mine, None, of)
        rng = random.Random(f"{self.plan.random_seed}/arrivals")
        times = arrival_times(
            arrival.segments, rng, arrival.process, burstiness=arrival.burstiness, part=mine, parts=of
        )
        return map(Due, times)

    def _issue(self, request: Prepared, due_ns: int) -> RequestRecord:
        """All attempts of one request; returns the last one's record."""
        recorder = self._recorder
        recorder.in_flight += 1
        try:
            for attempt in range(self.plan.retries.max_attempts):
                record = self._client.perform(request, due_ns, attempt)
                again = self._retries(record)
                if again:
                    record = dataclasses.replace(record, will_retry=True)
                recorder.write(record)
                self._on_record(record)
                if not again:
                    break
                try:
                    gevent.sleep(self._work.backoff_s(attempt))
                except (
                    gevent.GreenletExit
                ):  # the run ends here: the request must not end as one that is tried again
                    record = self._client.not_sent(request, due_ns, attempt + 1)
                    recorder.write(record)
                    break
            return record
        except Exception:  # our own fault, not the server's, and raised again: the run cannot be trusted
            self.crashed = self.closing = True
            raise
        finally:
            recorder.in_flight -= 1

    def _retries(self, record: RequestRecord) -> bool:
        retries = self.plan.retries
        return (
            record.outcome == "error"
            and record.attempt + 1 < retries.max_attempts
            and not self.closing
            and record.error_kind in retries.on
        )


def _split(total: int | None, worker: int, workers: int) -> int | None:
    """This worker's part of *total* requests."""
    return None if total is None else total // workers + (worker < total % workers)
