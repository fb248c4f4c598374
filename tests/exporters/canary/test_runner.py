"""Many targets over time: one request at once, back-off, and a targets file that changes."""

import asyncio
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from exporters.canary.access import Access
from exporters.canary.request import Asker
from exporters.canary.runner import Runner, watch_target
from exporters.canary.schedule import Schedule
from exporters.canary.series import Outcome, Record
from exporters.canary.targets import Target, TargetsFile


class HandClock:
    """Time moves only when somebody sleeps or the test says so; Unix time is 1,000,000 s ahead."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Seconds since the test began."""
        return self.now

    def unix(self) -> float:
        """Seconds since 1970, as far as the test is concerned."""
        return 1_000_000 + self.now

    async def sleep(self, seconds: float) -> None:
        """Move time on at once."""
        self.now += seconds


class ScriptedAsker:
    """Answers from a list of (result, seconds it took); cancels the watch when the list is over."""

    def __init__(self, clock: HandClock, record: Record, script: list[tuple[str, float]]) -> None:
        self.clock, self.record, self.script = clock, record, script
        self.published_model: str | None = "tiny"
        self.starts: list[float] = []
        self.backoffs: list[float] = []

    async def ask(self) -> Outcome:
        """Take the next line of the script."""
        if self.starts:
            self.backoffs.append(self.record.backoff_seconds)
        if not self.script:
            raise asyncio.CancelledError
        assert self.record.in_flight == 1
        self.starts.append(self.clock.now)
        result, seconds = self.script.pop(0)
        self.clock.now += seconds
        return Outcome(result, 200, seconds, seconds)  # type: ignore[arg-type] # results come from the script


async def test_a_sick_engine_is_asked_less_often_and_a_healed_one_as_before() -> None:
    """Interval 10, timeout 8, maximum 40: starts 0 10 | 20 40 80 | 120, healed, 130."""
    clock, record = HandClock(), Record({})
    script = [("ok", 0.2), *[("timeout", 8.0)] * 4, ("ok", 0.2), ("ok", 0.2)]
    asker: Any = ScriptedAsker(clock, record, script)
    with pytest.raises(asyncio.CancelledError):
        await watch_target(asker, record, Schedule(10, 8, 40), clock, "e:1", jitter=lambda: 0.0)
    assert asker.starts == pytest.approx([0, 10, 20, 40, 80, 120, 130])
    assert asker.backoffs == [0, 10, 20, 40, 40, 0, 0]
    assert record.requests["timeout", "200"] == 4
    assert record.requests["ok", "200"] == 3
    assert record.last_success == pytest.approx(1_000_130.2)
    assert record.last_attempt == pytest.approx(1_000_140)
    assert record.in_flight == 0


async def test_jitter_shortens_waits_by_a_tenth_at_most() -> None:
    """With jitter at its most the first start is at 1 s and the others 9 s apart."""
    clock, record = HandClock(), Record({})
    asker: Any = ScriptedAsker(clock, record, [("ok", 0.1)] * 3)
    with pytest.raises(asyncio.CancelledError):
        await watch_target(asker, record, Schedule(10, 8, 40), clock, "e:1", jitter=lambda: 1.0)
    assert asker.starts == pytest.approx([1, 10, 19])


async def test_the_log_tells_changes_once(caplog: pytest.LogCaptureFixture) -> None:
    """Ten failures in a row are one line, the recovery another."""
    clock, record = HandClock(), Record({})
    script = [("ok", 0.1), *[("no_token", 0.1)] * 10, ("ok", 0.1)]
    asker: Any = ScriptedAsker(clock, record, script)
    with caplog.at_level(logging.INFO), pytest.raises(asyncio.CancelledError):
        await watch_target(asker, record, Schedule(10, 8, 40), clock, "e:1", jitter=lambda: 0.0)
    assert [line.split(":")[2].strip().split(" ")[0] for line in caplog.messages] == ["canary"] * 3
    assert "no_token" in caplog.messages[1]


MakeRunner = Callable[..., Runner]


@pytest.fixture
async def make_runner(tmp_path: Path) -> AsyncIterator[MakeRunner]:
    """Build runners over real HTTP that read tmp_path/targets.json."""
    async with aiohttp.ClientSession() as session:

        def make(schedule: Schedule) -> Runner:
            def asker(target: Target) -> Asker:
                async def access() -> Access:
                    return Access(target.base_url)

                return Asker(session, access, schedule.timeout_seconds)

            return Runner(TargetsFile(tmp_path / "targets.json"), schedule, asker)

        yield make


def write_targets(path: Path, second: int, *groups: tuple[str, dict[str, str]]) -> None:
    """Write a targets file whose time of change is *second*."""
    path.write_text(json.dumps([{"targets": [a], "labels": labels} for a, labels in groups]))
    os.utime(path, (second, second))


async def until(holds: Callable[[], bool]) -> None:
    """Wait up to 10 s for a condition."""
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


async def test_there_is_never_a_second_request_before_the_first_is_over(
    start_engine: Callable[[], Awaitable[Any]], make_runner: MakeRunner, tmp_path: Path
) -> None:
    """An engine that needs longer than the interval is asked one by one."""
    engine = await start_engine()
    engine.delay = 0.1
    write_targets(tmp_path / "targets.json", 1, (engine.address, {}))
    runner = make_runner(Schedule(0.01, 5, 5))
    task = asyncio.create_task(runner.run())
    await until(lambda: len(engine.seen) >= 4)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert engine.most_at_once == 1
    assert runner.watches == {}


async def test_targets_come_and_go_with_the_file(
    start_engine: Callable[[], Awaitable[Any]], make_runner: MakeRunner, tmp_path: Path
) -> None:
    """A new target is asked, one that left is asked no more and its record is gone, one that stays goes on."""
    first, second = await start_engine(), await start_engine()
    path = tmp_path / "targets.json"
    runner = make_runner(Schedule(0.02, 5, 5))
    write_targets(path, 1, (first.address, {"service": "a"}))
    await runner.follow_file()
    await until(lambda: len(first.seen) >= 2)
    (record,) = runner.records.values()
    write_targets(path, 2, (first.address, {"service": "a"}), (second.address, {"service": "b"}))
    await runner.follow_file()
    await until(lambda: len(second.seen) >= 1)
    assert [r.labels["service"] for r in runner.records.values()] == ["a", "b"]
    assert next(iter(runner.records.values())) is record
    write_targets(path, 3, (second.address, {"service": "b"}))
    await runner.follow_file()
    await until(lambda: len(second.seen) >= 3)  # what was on its way to the first has arrived by then
    asked = len(first.seen)
    await until(lambda: len(second.seen) >= 6)
    assert len(first.seen) == asked
    assert [r.labels["service"] for r in runner.records.values()] == ["b"]
    write_targets(path, 4)
    await runner.follow_file()
    assert runner.records == {}


async def test_a_broken_file_stops_nothing(
    start_engine: Callable[[], Awaitable[Any]], make_runner: MakeRunner, tmp_path: Path
) -> None:
    """The targets known before are still asked while the file is half written."""
    engine = await start_engine()
    path = tmp_path / "targets.json"
    runner = make_runner(Schedule(0.02, 5, 5))
    write_targets(path, 1, (engine.address, {}))
    await runner.follow_file()
    await until(lambda: len(engine.seen) >= 1)
    path.write_text("[{")
    await runner.follow_file()
    asked = len(engine.seen)
    await until(lambda: len(engine.seen) > asked)
    assert (runner.file.errors, runner.file.valid, len(runner.records)) == (1, False, 1)
    write_targets(path, 3)
    await runner.follow_file()


async def test_a_target_that_hangs_is_let_go_when_it_leaves(
    start_engine: Callable[[], Awaitable[Any]], make_runner: MakeRunner, tmp_path: Path
) -> None:
    """Removing a hung target does not wait for its timeout."""
    engine = await start_engine()
    engine.delay = 60
    path = tmp_path / "targets.json"
    runner = make_runner(Schedule(0.02, 50, 50))
    write_targets(path, 1, (engine.address, {}))
    await runner.follow_file()
    await until(lambda: engine.now == 1)
    assert [r.in_flight for r in runner.records.values()] == [1]
    write_targets(path, 2)
    async with asyncio.timeout(10):
        await runner.follow_file()
    assert runner.records == {}
