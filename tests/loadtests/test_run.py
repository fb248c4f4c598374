"""Whole runs: Locust in its own process against the truthful server, and what is left when it dies."""

import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from loadtests.clocks import read_clocks
from loadtests.plan import Arrival, LoadPlan, closed, open_loop, parse_plan
from loadtests.recorder_files import records_file
from loadtests.run import LoadError, LoadProcess, read_records, read_result, run_load

ROOT = Path(__file__).parents[2]


def _plan(url: str, arrival: Arrival, **changes: Any) -> LoadPlan:
    base = {"base_url": url, "model": "ok", "arrival": arrival, "output_tokens": 3, "drain_s": 5}
    return parse_plan({**base, **changes})


def _wait_for(condition: Any, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_importing_the_runner_brings_neither_locust_nor_gevent() -> None:
    """Monkey-patching belongs to the load process alone."""
    names = "answer,clocks,compare,gates,http1,join,lengths,plan,quality,records,report,rounds,run,shapes,sse,stream,sweep,workload"
    code = f"import sys\nfor n in '{names}'.split(','): __import__('loadtests.' + n)\n"
    code += "sys.exit(bool({'gevent', 'locust'} & set(sys.modules)))"

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_open_loop_sends_every_request_once(server: Any, tmp_path: Path) -> None:
    """40 a second for 1.5 s, evenly: 60 requests, each recorded as the server saw it, on schedule."""
    plan = _plan(server.url, open_loop(40, 1.5, "constant"), tenants=[{"name": "t", "share": 1}])
    result = run_load(plan, tmp_path)

    assert len(result.records) == 60 == len(server.seen)
    assert {record.outcome for record in result.records} == {"ok"}
    assert {record.trace_id for record in result.records} == {s.headers["x-request-id"] for s in server.seen}
    assert sum(record.output_tokens or 0 for record in result.records) == 180
    gaps = {round(b.scheduled_s - a.scheduled_s, 3) for a, b in pairwise(result.records)}
    assert gaps == {0.025}
    assert all(record.schedule_delay_s >= 0 for record in result.records)
    assert (result.exit_code, result.stopped) == (0, False)
    assert result.health[-1]["written"] == 60
    assert "time to first token" in (tmp_path / "locust.log").read_text(encoding="utf-8")
    assert read_result(tmp_path).records == result.records
    assert (tmp_path / "records.parquet").exists()


def test_closed_loop_follows_its_users(server: Any, tmp_path: Path) -> None:
    """One client for a second, then three: never more under way than there are clients."""
    arrival = parse_plan({"base_url": "http://h:1", "model": "m", "arrival": {"kind": "closed", "segments": [
        {"duration_s": 1, "start": 1, "end": 1}, {"duration_s": 1, "start": 3, "end": 3}]}}).arrival  # fmt: skip
    result = run_load(_plan(server.url, arrival), tmp_path)
    begin = result.records[0].scheduled_s
    early = [record for record in result.records if record.end_s < begin + 0.9]
    late = [record for record in result.records if record.scheduled_s > begin + 1.3]

    assert _most_at_once(early) == 1
    assert _most_at_once(late) == 3
    assert len(result.records) == len(server.seen)


def _most_at_once(records: list[Any]) -> int:
    edges = sorted([(r.scheduled_s, 1) for r in records] + [(r.end_s, -1) for r in records])
    now = most = 0
    for _, change in edges:
        now += change
        most = max(most, now)
    return most


def test_errors_aborts_and_maximum(server: Any, tmp_path: Path) -> None:
    """In-stream errors are errors, and the run ends after as many requests as were wanted."""
    result = run_load(_plan(server.url, closed(2, 30), model="error-event", max_requests=7), tmp_path)

    assert [record.error_name for record in result.records] == ["stream_error:EngineDead"] * 7
    log = (tmp_path / "locust.log").read_text(encoding="utf-8")
    assert "RequestFailed" in log
    assert "engine stopped" not in log


def test_retries_are_attempts_of_one_request(server: Any, tmp_path: Path) -> None:
    """Three attempts of each request are recorded, the first two as to be retried, with back-off between."""
    retries = {"max_attempts": 3, "base_s": 0.05, "cap_s": 2}
    plan = _plan(server.url, closed(1, 20), model="refuse", max_requests=2, retries=retries)
    records = run_load(plan, tmp_path).records

    assert [(r.seq, r.attempt, r.will_retry) for r in sorted(records, key=lambda r: (r.seq, r.attempt))] == [
        (seq, attempt, attempt < 2) for seq in (0, 1) for attempt in (0, 1, 2)
    ]
    assert len({record.trace_id for record in records}) == 2
    assert len({seen.headers["x-request-id"] for seen in server.seen}) == 6
    first, second = (r for r in records if r.seq == 0 and r.attempt < 2)
    assert second.started_s - first.end_s >= 0.05 * 0.75
    assert second.scheduled_s == first.scheduled_s  # what the user waits for began there


def test_a_request_cut_in_its_back_off_is_unfinished(server: Any, tmp_path: Path) -> None:
    """Refused, it waits 0.3 s or more to be tried again when the run ends 0.1 s after the last send: never lost."""
    retries = {"max_attempts": 20, "base_s": 0.2, "cap_s": 10, "jitter": 0.25}
    plan = _plan(server.url, open_loop(10, 1, "constant"), model="refuse", retries=retries, drain_s=0.1)
    result = run_load(plan, tmp_path)
    last = [record for record in result.records if not record.will_retry]

    assert sorted(record.seq for record in last) == list(range(10))
    cut = [record for record in last if record.outcome == "unfinished" and record.sent_s is None]
    assert cut
    assert all(record.attempt > 0 and record.error_kind is None for record in cut)


def test_a_frozen_server_does_not_slow_the_schedule(server: Any, tmp_path: Path) -> None:
    """A61 at a tenth of its size: 100 requests in 1 s, the server frozen for 0.6 s of it.

    A closed loop would have sent about 40 and shown one slow one a user; here all 100 are sent and most waited.
    """

    def freeze(process: LoadProcess) -> bool:
        if len(server.seen) >= 20 and not thawed:
            server.frozen.set()
            time.sleep(0.6)
            server.frozen.clear()
            thawed.append(True)
        return True

    thawed: list[bool] = []
    plan = _plan(server.url, open_loop(100, 1, "constant"), output_tokens=1)
    records = run_load(plan, tmp_path, on_tick=freeze, tick_s=0.01).records
    waits = sorted(record.latency_from_schedule_s or 0 for record in records)

    assert thawed and len(records) == 100
    assert waits[-5] > 0.5
    assert waits[50] > 0.1


def test_stop_at_once_keeps_what_is_known(server: Any, tmp_path: Path) -> None:
    """Answers under way are recorded as unfinished, finished ones as they were."""
    process = LoadProcess(_plan(server.url, closed(3, 60), output_tokens=500), tmp_path)
    _wait_for(lambda: len(server.seen) == 3 and all(len(seen.tokens) > 2 for seen in server.seen))
    result = process.stop()

    assert [record.outcome for record in result.records] == ["unfinished"] * 3
    assert all(record.chunks > 0 for record in result.records)
    assert result.stopped


@pytest.mark.parametrize("arrival", [open_loop(10, 0.3, "constant"), closed(3, 0.3)], ids=["open", "closed"])
def test_unanswered_requests_are_cut_after_the_drain(server: Any, tmp_path: Path, arrival: Arrival) -> None:
    """A slow answer is not left out of the records: it is there as unfinished, with the time it had."""
    result = run_load(_plan(server.url, arrival, output_tokens=900, drain_s=0.5), tmp_path)

    assert [record.outcome for record in result.records] == ["unfinished"] * 3
    assert all(record.end_s - record.started_s > 0.4 for record in result.records)


def test_records_survive_a_killed_client(server: Any, tmp_path: Path) -> None:
    """SIGKILL loses at most the last fraction of a second; a failed client is an error."""
    process = LoadProcess(_plan(server.url, closed(2, 60)), tmp_path)
    path = records_file(tmp_path, 0)
    _wait_for(lambda: path.exists() and path.stat().st_size > 2000)
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(LoadError, match="ended with code -9"):
        process.wait(20)

    kept = list(read_records(tmp_path))
    assert len(kept) >= 2
    assert {record.outcome for record in kept} == {"ok"}


def test_load_ends_when_its_starter_is_gone(server: Any, tmp_path: Path) -> None:
    """A starter that was killed leaves no load behind that nobody can stop."""
    plan = _plan(server.url, closed(1, 120)).model_dump_json()
    code = (
        "import sys; from pathlib import Path; from loadtests.plan import parse_plan; import json\n"
        "from loadtests.run import LoadProcess\n"
        "p = LoadProcess(parse_plan(json.loads(sys.argv[1])), Path(sys.argv[2])); print(p.pid, flush=True); p.wait()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, plan, str(tmp_path / "r")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        client = int(starter.stdout.readline())
        _wait_for(lambda: len(server.seen) > 3)
        starter.kill()
    _wait_for(lambda: not _alive(client))

    assert [record.outcome for record in read_records(tmp_path / "r")].count("ok") >= 3


def _alive(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"


def test_several_processes_share_the_plan(server: Any, tmp_path: Path) -> None:
    """Three workers send parts of one schedule: merged, 40 a second stand 25 ms apart; their clocks are compared."""
    plan = _plan(server.url, open_loop(40, 1, "constant"), processes=3)
    result = run_load(plan, tmp_path)

    assert len(result.records) == 40 == len(server.seen)
    assert {record.worker for record in result.records} == {0, 1, 2}
    assert {round(b.scheduled_s - a.scheduled_s, 3) for a, b in pairwise(result.records)} == {0.025}
    assert len({record.trace_id for record in result.records}) == 40
    clocks = read_clocks(tmp_path)
    assert set(clocks) == {0, 1, 2}
    assert all(clock.same_host and abs(clock.offset_s) <= clock.error_s + 0.001 for clock in clocks.values())


def test_a_maximum_is_the_beginning_of_the_schedule(server: Any, tmp_path: Path) -> None:
    """Seven requests by three workers: three, two and two of them, evenly spaced as the first seven of one are."""
    plan = _plan(server.url, open_loop(40, 10, "constant"), processes=3, max_requests=7)
    records = run_load(plan, tmp_path).records

    assert [record.worker for record in records] == [0, 1, 2, 0, 1, 2, 0]
    assert {round(b.scheduled_s - a.scheduled_s, 3) for a, b in pairwise(records)} == {0.025}


def test_two_distributed_runs_at_once_keep_to_themselves(server: Any, tmp_path: Path) -> None:
    """Each has a master on a port of its own, on loopback: 20 requests each, by its own two workers."""
    plan = _plan(server.url, open_loop(20, 1, "constant"), processes=2)
    both = [LoadProcess(plan, tmp_path / name) for name in "ab"]
    results = [one.wait(60) for one in both]

    assert [len(result.records) for result in results] == [20, 20]
    assert [set(read_clocks(result.folder)) for result in results] == [{0, 1}] * 2
    ids = [record.trace_id for result in results for record in result.records]
    assert len(server.seen) == 40 == len(ids)


def test_a_killed_worker_fails_the_run(server: Any, tmp_path: Path) -> None:
    """Half of the load is gone with it: the run ends by itself, and as one that failed."""
    process = LoadProcess(_plan(server.url, open_loop(20, 60), processes=2), tmp_path)
    try:
        _wait_for(lambda: len(list(tmp_path.glob("client-*.jsonl"))) == 2)
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        os.kill(int(workers[0]), signal.SIGKILL)

        with pytest.raises(LoadError, match="code 70"):
            process.wait(45)
    finally:
        if process.running:
            process.stop()


def test_a_used_folder_is_refused(server: Any, tmp_path: Path) -> None:
    """Two runs never mix their records."""
    records_file(tmp_path, 0).touch()

    with pytest.raises(LoadError, match="earlier run"):
        LoadProcess(_plan(server.url, closed(1, 1)), tmp_path)


def test_a_client_that_cannot_start_is_an_error(tmp_path: Path) -> None:
    """The error names the log and shows its end."""
    plan = _plan("http://127.0.0.1:9", closed(1, 1), token_file=str(tmp_path / "none"))

    with pytest.raises(LoadError, match=r"locust\.log"):
        run_load(plan, tmp_path / "run")
