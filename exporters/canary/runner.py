"""Targets and a schedule -> one task a target that asks it, never twice at once, and keeps its record."""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from exporters.canary.request import Asker
from exporters.canary.schedule import JITTER_RATIO, Schedule
from exporters.canary.series import Outcome, Record
from exporters.canary.targets import Target, TargetsFile

LOG = logging.getLogger(__name__)

FILE_LOOK_SECONDS = 1.0
"""How often the targets file is looked at (one stat call)."""


class Clock(Protocol):
    """Time as the runner sees it; tests bring their own."""

    def monotonic(self) -> float: ...

    def unix(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        return time.monotonic()

    def unix(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass(frozen=True)
class Watch:
    """A target under watch: what it answered so far, and the task that asks it."""

    record: Record
    task: asyncio.Task[None]


async def watch_target(
    asker: Asker, record: Record, schedule: Schedule, clock: Clock, name: str, jitter: Callable[[], float]
) -> None:
    """Ask a target for ever: one request, its record, the wait; *jitter* gives numbers in 0..1."""
    await clock.sleep(schedule.interval_seconds * JITTER_RATIO * jitter())
    while True:
        started = clock.monotonic()
        record.last_attempt = clock.unix()
        record.in_flight = 1
        try:
            outcome = await asker.ask()
        finally:
            record.in_flight = 0
        ended = clock.monotonic()
        if asker.published_model is not None:
            record.serve_model(asker.published_model)
        before = record.success
        record.observe(outcome, clock.unix())
        record.backoff_seconds = schedule.backoff_seconds(record.failures_in_a_row)
        _tell_change(name, before, outcome)
        due = schedule.next_start(started, ended, record.failures_in_a_row, jitter())
        await clock.sleep(max(0.0, due - clock.monotonic()))


def _tell_change(name: str, before: bool | None, outcome: Outcome) -> None:
    if outcome.result == "ok":
        if before is not True:
            LOG.info("%s: canary request succeeded in %.3f s", name, outcome.duration_seconds or 0.0)
    elif before is not False:
        LOG.warning("%s: canary request failed: %s: %s", name, outcome.result, outcome.detail)


class Runner:
    """Keeps the watched targets equal to the targets file."""

    def __init__(
        self,
        file: TargetsFile,
        schedule: Schedule,
        make_asker: Callable[[Target], Asker],
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.file = file
        self.watches: dict[Target, Watch] = {}
        self._schedule = schedule
        self._make_asker = make_asker
        self._clock = clock or SystemClock()
        self._jitter = jitter

    @property
    def records(self) -> dict[Target, Record]:
        return {target: watch.record for target, watch in self.watches.items()}

    async def run(self) -> None:
        """Follow the targets file until cancelled; then end every watch."""
        try:
            while True:
                await self.follow_file()
                await self._clock.sleep(FILE_LOOK_SECONDS)
        finally:
            await self._end(list(self.watches))

    async def follow_file(self) -> None:
        """Read the file if it changed; end what left it, begin what is new."""
        if not self.file.refresh():
            return
        wanted = dict.fromkeys(self.file.targets)
        await self._end([target for target in self.watches if target not in wanted])
        for target in wanted:
            if target not in self.watches:
                self._begin(target)
        LOG.info("%s: asking %d targets", self.file.path, len(self.watches))

    def _begin(self, target: Target) -> None:
        record = Record(dict(target.labels))
        work = watch_target(
            self._make_asker(target), record, self._schedule, self._clock, target.address, self._jitter
        )
        task = asyncio.create_task(work, name=f"canary {target.address}")
        task.add_done_callback(_tell_crash)
        self.watches[target] = Watch(record, task)

    async def _end(self, targets: list[Target]) -> None:
        """Cancel and wait: a target that comes back with other labels must not be asked twice at once."""
        tasks = [self.watches.pop(target).task for target in targets]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        LOG.error("%s ended and is asked no more; this is a bug", task.get_name(), exc_info=error)
