"""The load of one process, without Locust: what it does when it is ended."""

import time
from pathlib import Path
from typing import Any

import gevent

from loadtests.driver import Driver
from loadtests.plan import open_loop, parse_plan
from loadtests.recorder_files import records_file
from loadtests.records import read_jsonl


def test_a_run_that_is_ended_sends_nothing_more(server: Any, tmp_path: Path) -> None:
    """400 requests a second, ended after a quarter: the one that waited for its time is not sent into closed files."""
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": open_loop(400, 30, "constant")})
    driver = Driver(plan, tmp_path, lambda _: None)
    driver.begin(time.monotonic())
    user = gevent.spawn(driver.run_open)
    gevent.sleep(0.25)
    driver.finish()
    user.join(5)
    gevent.sleep(0.1)

    assert user.ready()
    assert not driver.crashed
    assert 0 < len(server.seen) <= len(list(read_jsonl(records_file(tmp_path, 0))))
