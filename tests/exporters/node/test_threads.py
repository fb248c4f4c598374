"""The engine core's thread, on a /proc tree that changes between two looks."""

from pathlib import Path

import pytest

from exporters.node.engines import Core
from exporters.node.threads import CoreThread
from slo.names.node import ENGINE_CORE_BOUND_CPUS_BUSY_SECONDS_TOTAL, ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL

FOUR = frozenset(range(4))


def write(
    root: Path,
    busy: float,
    waited: float = 0.0,
    processor: int = 0,
    allowed: str = "0-3",
    migrations: int | None = None,
    schedstat: bool = True,
) -> None:
    """The files of pid 7's main thread: seconds busy and waited, the CPU it is on."""
    task = root / "7/task/7"
    task.mkdir(parents=True, exist_ok=True)
    ticks = round(busy * 100)
    (task / "stat").write_text(
        f"7 (core) R 1 {'0 ' * 9}{ticks} 0 {'0 ' * 6}99 0 0 {'0 ' * 14}{processor} 0 0\n"
    )
    (task / "status").write_text(
        f"Name:\tcore\nCpus_allowed_list:\t{allowed}\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t2\n"
    )
    if schedstat:
        (task / "schedstat").write_text(f"{round(busy * 1e9)} {round(waited * 1e9)} 1\n")
    if migrations is not None:
        (task / "sched").write_text(f"se.nr_migrations : {migrations}\n")


@pytest.fixture
def thread() -> CoreThread:
    """The engine core with pid 7."""
    return CoreThread(Core(7, 99, "e:1", "0", "m"), 'instance="e:1"')


def test_binding_is_busy_over_wall(tmp_path: Path, thread: CoreThread) -> None:
    """8.2 s busy and 0.5 s in the run queue of 10 s on one bound core: a binding of 0.82."""
    write(tmp_path, busy=1.0, waited=2.0, processor=3, allowed="3")
    thread.read(tmp_path, 100, FOUR, {3: 50.0})
    write(tmp_path, busy=9.2, waited=2.5, processor=3, allowed="3")
    thread.read(tmp_path, 110, FOUR, {3: 59.5})

    assert thread.busy / thread.wall == pytest.approx(0.82)
    assert thread.waited == pytest.approx(0.5)
    assert thread.bound == {3}
    assert thread.bound_cpus_busy == pytest.approx(9.5)
    assert thread.on_mask == pytest.approx(8.2)
    assert thread.switches == {"voluntary": 5, "involuntary": 2}


def test_an_unbound_thread_is_measured_on_the_core_it_ran_on(tmp_path: Path, thread: CoreThread) -> None:
    """Its mask is every CPU: bound to none, wall time of one."""
    write(tmp_path, busy=1.0, processor=1)
    thread.read(tmp_path, 100, FOUR, {})
    write(tmp_path, busy=6.0, processor=2)
    thread.read(tmp_path, 110, FOUR, {})

    assert thread.bound == frozenset()
    assert thread.busy / thread.wall == pytest.approx(0.5)
    assert thread.on_mask == pytest.approx(5.0)
    assert thread.migrations == 1
    families = [sample.family for sample in thread.samples({})]
    assert ENGINE_CORE_BOUND_CPUS_BUSY_SECONDS_TOTAL not in families
    assert ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL in families


def test_residency_counts_run_time_off_the_wanted_cpus(tmp_path: Path) -> None:
    """It should stay on CPU 0, the kernel lets it run anywhere, and it moved to 2 on the way."""
    thread = CoreThread(Core(7, 99, "e:1", "0", "m", cpus="0"), "")
    for at, (busy, processor, migrations) in enumerate([(0.0, 0, 4), (1.0, 0, 4), (2.0, 2, 7), (3.0, 2, 7)]):
        write(tmp_path, busy=busy, processor=processor, migrations=migrations)
        thread.read(tmp_path, 100 + at, FOUR, {0: 0.0})

    assert thread.busy == pytest.approx(3.0)
    assert thread.on_mask == pytest.approx(
        1.5
    )  # all of the first second, half of the second, none of the third
    assert thread.migrations == 3


def test_without_schedstat_there_is_no_run_queue_series(tmp_path: Path, thread: CoreThread) -> None:
    """Busy time then comes from ticks; the delay is unknown, not 0."""
    for at, busy in enumerate((0.0, 0.5)):
        write(tmp_path, busy=busy, schedstat=False)
        thread.read(tmp_path, 100 + at, FOUR, {})

    assert thread.busy == pytest.approx(0.5)
    assert thread.waited is None
    assert ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL not in [sample.family for sample in thread.samples({})]


def test_another_process_under_the_same_pid_adds_nothing(tmp_path: Path, thread: CoreThread) -> None:
    """Start times differ: the pid was given again."""
    write(tmp_path, busy=1.0)
    thread.read(tmp_path, 100, FOUR, {})
    stat = tmp_path / "7/task/7/stat"
    stat.write_text(stat.read_text().replace(" 99 0 0", " 12345 0 0"))
    thread.read(tmp_path, 110, FOUR, {})

    assert (thread.wall, thread.busy) == (0.0, 0.0)


def test_threads_are_added_up_by_name(tmp_path: Path, thread: CoreThread) -> None:
    """Two workers of one name; one ends: what it used stays counted."""
    write(tmp_path, busy=2.0)
    for tid, ticks in ((8, 100), (9, 300)):
        (tmp_path / f"7/task/{tid}").mkdir()
        (tmp_path / f"7/task/{tid}/stat").write_text(
            f"{tid} (io) S 1 {'0 ' * 9}{ticks} 0 {'0 ' * 6}99 0 0 {'0 ' * 14}0 0 0\n"
        )
    thread.read_all(tmp_path)
    (tmp_path / "7/task/9/stat").unlink()
    thread.read_all(tmp_path)

    assert dict(thread.threads) == {"main": 2.0, "io": 4.0}


def test_threads_of_endless_names_are_told_apart_up_to_a_number(tmp_path: Path, thread: CoreThread) -> None:
    """A pool that numbers its threads: 63 names, and `other` for the 37 s of the rest."""
    for tid in range(100):
        task = tmp_path / "7/task" / str(100 + tid)
        task.mkdir(parents=True)
        (task / "stat").write_text(
            f"{100 + tid} (pool-{tid}) R 1 {'0 ' * 9}100 0 {'0 ' * 6}99 0 0 {'0 ' * 14}0 0 0\n"
        )
    thread.read_all(tmp_path)

    assert len(thread.threads) == 64
    assert thread.threads["pool-0"] == 1.0
    assert thread.threads["other"] == 37.0
