"""A run that was ended from outside, before its plan was over: kept, and told apart from one that went as planned."""

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from inferwatch.cli import main
from loadtests.gates import judge
from loadtests.plan import Arrival, LoadPlan, closed, open_loop, parse_plan
from loadtests.rounds import run_rounds
from loadtests.run import LoadError, LoadProcess, read_result
from loadtests.verdict import GateExit
from slo import spec as slo_spec


def _plan(url: str, arrival: Arrival, **changes: Any) -> LoadPlan:
    base = {"base_url": url, "model": "ok", "arrival": arrival, "output_tokens": 3, "drain_s": 5}
    return parse_plan({**base, **changes})


def _wait_for(condition: Callable[[], bool], timeout_s: float = 30) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


@pytest.mark.parametrize(
    ("processes", "ending"), [(1, signal.SIGTERM), (2, signal.SIGTERM), (1, signal.SIGINT)]
)
def test_a_client_that_was_told_to_end_did_not_run_its_plan(
    server: Any, tmp_path: Path, processes: int, ending: int
) -> None:
    """A plan of 600 s, a signal to the client (the master, with two processes) after ten requests: stopped."""
    process = LoadProcess(_plan(server.url, open_loop(20, 600), processes=processes), tmp_path)
    try:
        _wait_for(lambda: len(server.seen) > 10)
        os.kill(process.pid, ending)
        result = process.wait(45)
    finally:
        if process.running:
            process.stop()

    assert result.stopped
    assert result.exit_code != 0
    assert len(result.records) >= 10
    assert read_result(tmp_path).stopped
    checks = judge([result], None, slo_spec.load()).checks
    assert [check.outcome for check in checks if check.name == "run: complete"] == [GateExit.RATE_NOT_REACHED]


def test_a_run_cut_while_it_drains_is_stopped(server: Any, tmp_path: Path) -> None:
    """All was sent, but the answers under way were cut: not as planned."""
    plan = _plan(server.url, open_loop(10, 0.5, "constant"), output_tokens=2000, drain_s=60)
    process = LoadProcess(plan, tmp_path)
    _wait_for(lambda: len(server.seen) == 5)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGTERM)
    result = process.wait(45)

    assert result.stopped
    assert [record.outcome for record in result.records] == ["unfinished"] * 5


def test_stop_after_the_end_changes_nothing(server: Any, tmp_path: Path) -> None:
    """A plan that was over when it was to be stopped ran as planned."""
    process = LoadProcess(_plan(server.url, closed(1, 30), max_requests=2), tmp_path)
    _wait_for(lambda: not process.running)
    result = process.stop()

    assert (result.stopped, result.exit_code, len(result.records)) == (False, 0, 2)


def test_a_worker_that_was_told_to_end_fails_the_run(server: Any, tmp_path: Path) -> None:
    """One of two leaves in good order: half of the load is gone, and its master must not wait for it for ever."""
    process = LoadProcess(_plan(server.url, open_loop(20, 4), processes=2), tmp_path)
    try:
        _wait_for(lambda: len(server.seen) > 10)
        os.kill(_children(process.pid)[0], signal.SIGTERM)
        with pytest.raises(LoadError, match="code 70"):
            process.wait(45)
    finally:
        if process.running:
            process.stop()


def _ended_by_another(server: Any) -> threading.Thread:
    """Somebody else's SIGTERM to the client of this test's process, once it has sent five requests."""

    def end() -> None:
        _wait_for(lambda: len(server.seen) > 5)
        for child in _children(os.getpid()):  # other tests leave helpers of Python's own
            if b"locustfile.py" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(child, signal.SIGTERM)

    thread = threading.Thread(target=end)
    thread.start()
    return thread


def test_the_command_says_that_its_run_was_cut_short(server: Any, tmp_path: Path) -> None:
    """The summary is there, and the exit status is not 0: the run did not go as planned."""
    words = ["load", "--url", server.url, "--model", "ok", "--rate", "20", "--seconds", "600"]
    other = _ended_by_another(server)
    done = CliRunner().invoke(main, [*words, "--records", str(tmp_path / "r"), "--json"])
    other.join(30)

    assert done.exit_code == 1
    assert "before its plan was over" in done.output
    assert '"stopped": true' in done.output


def test_a_round_that_was_cut_short_ends_the_pairs(server: Any, tmp_path: Path) -> None:
    """Nothing could be made of the other rounds."""
    other = _ended_by_another(server)
    with pytest.raises(LoadError, match="round-00: the load client was ended"):
        run_rounds(_plan(server.url, closed(1, 600)), {tmp_path / "a": server.url}, 3)
    other.join(30)

    assert not (tmp_path / "a" / "round-01").exists()
