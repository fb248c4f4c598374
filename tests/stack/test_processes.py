"""Processes are known by number and start time: ours are ended with their children, others never."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from inferwatch.stack import processes
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.state import Record

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
PARENT = (
    sys.executable,
    "-c",
    "import subprocess, sys, time; c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
    "print(c.pid, flush=True); time.sleep(600)",
)


def wait_for(condition: Callable[[], object]) -> None:
    """Return when *condition* holds; fail after ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_started_service_is_found_and_stopped(started: Callable[[Service], Record]) -> None:
    """A service lives in a session of its own until it is stopped; stopping twice says so."""
    record = started(Service("sleeper", SLEEPER, "http://127.0.0.1:1", "/"))

    found = processes.find(record)
    assert found is not None
    assert os.getsid(record.pid) == record.pid

    assert processes.stop(record) is True
    assert processes.find(record) is None
    assert processes.stop(record) is False


def test_output_and_environment_go_where_the_service_says(
    started: Callable[[Service], Record], tmp_path: Path
) -> None:
    """Both output streams land in the service's log; its environment is ours plus its own."""
    code = "import os, sys; print(os.environ['INFERWATCH_TEST']); print('err', file=sys.stderr)"
    record = started(
        Service("printer", (sys.executable, "-c", code), "http://x", "/", env={"INFERWATCH_TEST": "seen"})
    )
    wait_for(lambda: processes.find(record) is None)

    assert sorted((tmp_path / "logs" / "printer.log").read_text().split()) == ["err", "seen"]


def test_a_service_is_held_to_its_cores(started: Callable[[Service], Record]) -> None:
    """A service with cores runs on those, and we keep ours."""
    ours = os.sched_getaffinity(0)
    core = max(ours)
    record = started(Service("bound", SLEEPER, "http://x", "/", cores=(core,)))

    assert os.sched_getaffinity(record.pid) == {core}
    assert os.sched_getaffinity(0) == ours


def test_children_are_ended_with_their_parent(started: Callable[[Service], Record], tmp_path: Path) -> None:
    """Stopping a service ends the processes that it started."""
    record = started(Service("parent", PARENT, "http://x", "/"))
    log = tmp_path / "logs" / "parent.log"
    wait_for(lambda: log.read_text().strip())
    child = int(log.read_text())

    processes.stop(record)

    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_children_of_a_killed_parent_are_ended(started: Callable[[Service], Record], tmp_path: Path) -> None:
    """What a killed service left behind in its process group is still ours to end."""
    record = started(Service("parent", PARENT, "http://x", "/"))
    log = tmp_path / "logs" / "parent.log"
    wait_for(lambda: log.read_text().strip())
    child = int(log.read_text())
    os.kill(record.pid, signal.SIGKILL)
    wait_for(lambda: processes.find(record) is None)

    assert processes.stop(record) is True
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_a_stopped_process_is_ended(started: Callable[[Service], Record]) -> None:
    """A process held by SIGSTOP, as a hung engine is in the loop, does not outlive `down`."""
    record = started(Service("hung", SLEEPER, "http://x", "/"))
    os.kill(record.pid, signal.SIGSTOP)

    assert processes.stop(record) is True
    assert processes.find(record) is None


def test_a_process_that_ignores_term_is_killed(started: Callable[[Service], Record], tmp_path: Path) -> None:
    """After the grace time a service that ignores TERM is killed."""
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('on', flush=True); time.sleep(600)"
    record = started(Service("stubborn", (sys.executable, "-c", code), "http://x", "/"))
    wait_for(lambda: "on" in (tmp_path / "logs" / "stubborn.log").read_text())

    assert processes.stop(record, grace_seconds=0.2) is True
    assert processes.find(record) is None


def test_another_process_with_the_recorded_number_is_left_alone(
    started: Callable[[Service], Record],
) -> None:
    """A record whose number now belongs to a process that began at another time finds and ends nothing."""
    record = started(Service("sleeper", SLEEPER, "http://x", "/"))
    stale = replace(record, created=record.created - 3600)

    assert processes.find(stale) is None
    assert processes.stop(stale) is False
    assert processes.find(record) is not None


def test_a_process_outside_our_group_is_left_alone(started: Callable[[Service], Record]) -> None:
    """A process that somebody else started next to ours survives our stop."""
    record = started(Service("sleeper", SLEEPER, "http://x", "/"))
    foreign = subprocess.Popen(SLEEPER)
    try:
        processes.stop(record)

        assert foreign.poll() is None
    finally:
        foreign.kill()
        foreign.wait()


def test_ready_is_an_http_200(
    started: Callable[[Service], Record], web_service: Callable[..., Service], heard: Reporter
) -> None:
    """Waiting returns once the service answers."""
    service = web_service("web")
    record = started(service)

    processes.wait_ready(service, record, heard)

    assert processes.find(record) is not None


def test_a_service_that_dies_shows_the_end_of_its_log(
    started: Callable[[Service], Record], heard: Reporter
) -> None:
    """The error of a service that ends while starting carries what it said last."""
    service = Service(
        "broken", (sys.executable, "-c", "raise SystemExit('no such model')"), "http://127.0.0.1:9", "/"
    )
    record = started(service)

    with pytest.raises(StackError, match=r"broken ended while starting[\s\S]*no such model"):
        processes.wait_ready(service, record, heard)


def test_a_service_that_stays_silent_is_named(started: Callable[[Service], Record], heard: Reporter) -> None:
    """A service that never answers is an error after its time."""
    service = Service("mute", SLEEPER, "http://127.0.0.1:9", "/", ready_timeout_seconds=0.3)
    record = started(service)

    with pytest.raises(StackError, match="mute is not ready after 0 s"):
        processes.wait_ready(service, record, heard)


def test_a_missing_program_is_a_clean_error(tmp_path: Path) -> None:
    """A program that is not there is an error that names it."""
    service = Service("ghost", (str(tmp_path / "nothing"),), "http://x", "/")

    with pytest.raises(StackError, match=r"ghost: .*nothing cannot be run \(No such file"):
        processes.start(service, tmp_path / "logs")


def test_a_changed_file_changes_the_command_only_without_reload(tmp_path: Path) -> None:
    """Configuration that a service cannot reload counts as part of its command."""
    file = tmp_path / "c.yml"
    file.write_text("a: 1\n")
    restarted = Service("s", ("/bin/true",), "http://x", "/", config_files=(file,))
    reloaded = replace(restarted, reload_path="/-/reload")
    before = restarted.command_digest(), reloaded.command_digest(), reloaded.config_digest()
    file.write_text("a: 2\n")

    assert restarted.command_digest() != before[0]
    assert reloaded.command_digest() == before[1]
    assert reloaded.config_digest() != before[2]
