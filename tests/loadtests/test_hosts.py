"""Runs over several hosts: workers that join a master, with folders and clocks of their own.

A host is a process here whose boot id, wall clock and monotonic clock are set apart from the master's. Its open loop
would wake by the machine's real monotonic clock, so these runs are closed loops.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from loadtests.clocks import boot_id, read_clocks
from loadtests.gates import judge
from loadtests.launch import start, worker_command
from loadtests.plan import Arrival, LoadPlan, closed, parse_plan
from loadtests.run import LoadError, LoadProcess, read_health, read_result
from loadtests.verdict import GateExit
from slo import spec as slo_spec

HOST = """
import sys, time
boot, wall_s, monotonic_s = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
del sys.argv[1:4]
wall, wall_ns, monotonic_ns = time.time, time.time_ns, time.monotonic_ns
time.time = lambda: wall() + wall_s
time.time_ns = lambda: wall_ns() + int(wall_s * 1e9)
time.monotonic_ns = lambda: monotonic_ns() + int(monotonic_s * 1e9)
from loadtests import clocks
clocks.boot_id = lambda: boot
from locust.main import main
main()
"""
WALL_S, MONOTONIC_S = {"a": 120.0, "b": -300.0, "c": 0.0}, {"a": 1000.0, "b": -500.0, "c": 0.0}
EPSILON_S = 0.001  # what a reading of two clocks, one after the other, may be wrong by on a busy machine


def _plan(url: str, arrival: Arrival, **changes: Any) -> LoadPlan:
    base = {"base_url": url, "model": "ok", "arrival": arrival, "output_tokens": 3, "drain_s": 5}
    return parse_plan({**base, "processes": 2, "kernel_stamps": False, **changes})


def _free() -> tuple[str, int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1", int(probe.getsockname()[1])


@contextmanager
def _host(name: str, master: tuple[str, int], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker on a host whose clocks are set apart."""
    folder.mkdir()
    command = worker_command(master, folder, 1)
    at = command.index("-m")
    command[at : at + 2] = ["-c", HOST, name, str(WALL_S[name]), str(MONOTONIC_S[name])]
    process = start(command, folder)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextmanager
def _run(plan: LoadPlan, folder: Path) -> Iterator[tuple[LoadProcess, list["subprocess.Popen[bytes]"]]]:
    """A master and two hosts."""
    master = _free()
    process = LoadProcess(plan, folder / "master", master)
    try:
        with _host("a", master, folder / "a") as one, _host("b", master, folder / "b") as other:
            yield process, [one, other]
    finally:
        if process.running:
            process.stop()


def _wait_for(condition: Callable[[], bool], timeout_s: float = 40) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_records_of_two_hosts_are_on_the_masters_clock(server: Any, tmp_path: Path) -> None:
    """The server's log is on this machine's true clock: each request was sent just before it came, by the master's."""
    with _run(_plan(server.url, closed(4, 2)), tmp_path) as (process, hosts):
        result = process.wait(90)
        assert [host.wait(20) for host in hosts] == [0, 0]

    clocks, came = (
        read_clocks(result.folder),
        {seen.headers["x-request-id"]: seen.came for seen in server.seen},
    )
    assert not result.stopped
    assert len(result.records) == len(server.seen) >= 20
    assert {record.worker for record in result.records} == {0, 1}
    assert {clock.boot_id for clock in clocks.values()} == {"a", "b"}
    for record in result.records:
        clock = clocks[record.worker]
        assert clock.error_s < 0.25 and record.sent_s is not None
        assert -clock.error_s - EPSILON_S <= came[record.trace_id] - record.sent_s < 0.5
        assert abs(record.wall_offset_s - (time.time() - time.monotonic())) < 0.1
    for clock in clocks.values():
        assert clock.master_boot_id == boot_id()
        assert abs(clock.offset_s + MONOTONIC_S[clock.boot_id]) <= clock.error_s + EPSILON_S
        assert abs(clock.wall_offset_s + WALL_S[clock.boot_id]) <= clock.error_s + EPSILON_S
        assert clock.drift_s is not None and abs(clock.drift_s) <= clock.error_s


def test_the_masters_folder_holds_all_and_each_host_keeps_its_own(server: Any, tmp_path: Path) -> None:
    """What the gate reads (records, health, clocks) is in one folder; what was sent is what was written."""
    with _run(_plan(server.url, closed(2, 1)), tmp_path) as (process, hosts):
        result = process.wait(90)
        assert [host.wait(20) for host in hosts] == [0, 0]

    for kind in ("records-*.jsonl", "client-*.jsonl", "clock-*.json"):
        kept = {path.name: path.read_bytes() for path in result.folder.glob(kind)}
        assert {len(list((tmp_path / name).glob(kind))) for name in "ab"} == {1}
        assert kept == {
            path.name: path.read_bytes() for name in "ab" for path in (tmp_path / name).glob(kind)
        }
    assert {sample["worker"] for sample in read_health(result.folder)} == {0, 1}
    assert read_result(result.folder).records == result.records
    outcomes = {check.name: check.outcome for check in judge([result], None, slo_spec.load()).checks}
    assert GateExit.NO_DATA not in outcomes.values()


def test_a_host_that_is_lost_fails_the_run(server: Any, tmp_path: Path) -> None:
    """Half of the load is gone with it; the master does not go on alone."""
    with _run(_plan(server.url, closed(4, 120)), tmp_path) as (process, hosts):
        _wait_for(lambda: len(server.seen) > 10)
        hosts[0].send_signal(signal.SIGKILL)
        with pytest.raises(LoadError, match="code 70"):
            process.wait(60)
        assert hosts[1].wait(20) != 0


def test_a_run_that_is_stopped_brings_its_records_home(server: Any, tmp_path: Path) -> None:
    """Answers under way are cut on the hosts, and the master has them."""
    with _run(_plan(server.url, closed(4, 120), output_tokens=2000), tmp_path) as (process, hosts):
        _wait_for(lambda: len(server.seen) == 4 and all(len(seen.tokens) > 2 for seen in server.seen))
        result = process.stop()
        assert [host.wait(20) for host in hosts] == [75, 75]

    assert result.stopped
    assert [(r.outcome, r.chunks > 0) for r in result.records] == [("unfinished", True)] * 4
    assert set(read_clocks(result.folder)) == {0, 1}


def test_a_file_that_a_host_lacks_is_named_by_the_master(server: Any, tmp_path: Path) -> None:
    """The token is read on the worker's host; whoever started the run hears which one is missing, and where."""
    plan = _plan(server.url, closed(2, 60), token_file=str(tmp_path / "token"))
    with _run(plan, tmp_path) as (process, _), pytest.raises(LoadError, match=r"worker \d on \S+: .*token"):
        process.wait(40)

    assert server.seen == []


def test_a_worker_too_many_fails_the_run(server: Any, tmp_path: Path) -> None:
    """Users would be taken from the others for it."""
    with _run(_plan(server.url, closed(2, 60)), tmp_path) as (process, _):
        _wait_for(lambda: len(server.seen) > 2)
        assert process.listen is not None
        with _host("c", process.listen, tmp_path / "c"), pytest.raises(LoadError, match="code 70"):
            process.wait(40)

    assert "worker number 3 came, the run is of 2" in _log(tmp_path)


def test_a_host_that_is_lost_while_others_are_waited_for_fails_the_run(server: Any, tmp_path: Path) -> None:
    """Nothing was sent yet, and nobody waits the ten minutes for the other."""
    master = _free()
    process = LoadProcess(_plan(server.url, closed(2, 60)), tmp_path / "master", master)
    try:
        with _host("a", master, tmp_path / "a"):
            _wait_for(lambda: _joined(process.pid, master[1]))
            time.sleep(2)  # from the connection to the master's having heard of it
        with pytest.raises(LoadError, match="part of the load was not sent"):
            process.wait(40)
    finally:
        if process.running:
            process.stop()

    assert server.seen == []


def _joined(pid: int, port: int) -> bool:
    return any(one.laddr.port == port and one.raddr for one in psutil.Process(pid).net_connections("tcp"))


def _log(folder: Path) -> str:
    return (folder / "master" / "locust.log").read_text(encoding="utf-8")


def test_workers_on_a_real_host_through_the_command_line(server: Any, tmp_path: Path) -> None:
    """`load --workers 2` and `load-worker --processes 2`: an open loop of 40 requests, each sent once."""
    host, port = _free()
    code = "from inferwatch.cli import main; main()"
    load = [
        "load",
        "--url",
        server.url,
        "--model",
        "ok",
        "--rate",
        "40",
        "--seconds",
        "1",
        "--process",
        "constant",
    ]
    load += ["--workers", "2", "--bind", f"{host}:{port}", "--records", str(tmp_path / "master")]
    join = ["load-worker", f"{host}:{port}", "--processes", "2", "--records", str(tmp_path / "worker")]
    root = Path(__file__).parents[2]
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, *words], cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
        )
        for words in (load, join)
    ]
    try:
        assert [one.wait(120) for one in both] == [0, 0]
    finally:
        for one in both:
            if one.poll() is None:
                one.terminate()
            one.wait()
    result = read_result(tmp_path / "master")

    assert len(result.records) == 40 == len(server.seen)
    assert {record.worker for record in result.records} == {0, 1}
    assert result.plan.processes == 2
