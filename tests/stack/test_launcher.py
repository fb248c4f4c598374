"""Bringing the stack to a wish: what runs as wanted is kept, the rest is started, reloaded or ended."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from inferwatch.stack import launcher, processes, state
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Selection, State

WISH = Selection("urls", ("http://127.0.0.1:1",), "llm")
RELOADER = """
import http.server, pathlib, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def do_POST(self):
        with open(sys.argv[2], "a") as sink: sink.write(self.path + "\\n")
        self.send_response(int(sys.argv[3])); self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def reconcile(settings: Settings, heard: Reporter) -> Iterator[Callable[..., State]]:
    """Reconcile towards services; everything is ended with the test."""
    yield lambda *wanted: launcher.reconcile(settings, WISH, list(wanted), heard)
    launcher.down(settings, heard)


def pids(now: State) -> dict[str, int]:
    """Process numbers by service."""
    return {name: record.pid for name, record in now.records.items()}


def test_a_second_up_keeps_what_runs(
    reconcile: Callable[..., State], web_service: Callable[..., Service], settings: Settings
) -> None:
    """The same wish twice leaves every process as it is, and the state on disk says so."""
    wanted = web_service("a"), web_service("b", last=True)
    first = reconcile(*wanted)
    second = reconcile(*wanted)

    assert list(pids(first)) == ["a", "b"]
    assert pids(second) == pids(first)
    assert state.load(settings.state_file) == second


def test_a_dead_service_is_started_again(
    reconcile: Callable[..., State], web_service: Callable[..., Service]
) -> None:
    """A second wish starts what has died and keeps the rest."""
    wanted = web_service("a"), web_service("b")
    first = reconcile(*wanted)
    os.kill(first.records["a"].pid, 9)
    while processes.find(first.records["a"]) is not None:
        pass
    second = reconcile(*wanted)

    assert pids(second)["b"] == pids(first)["b"]
    assert pids(second)["a"] != pids(first)["a"]


def test_a_changed_command_restarts_only_that_service(
    reconcile: Callable[..., State], web_service: Callable[..., Service]
) -> None:
    """A service whose command changed is ended and started; the other is kept."""
    a, b = web_service("a"), web_service("b")
    first = reconcile(a, b)
    second = reconcile(replace(a, env={"CHANGED": "1"}), b)

    assert pids(second)["b"] == pids(first)["b"]
    assert pids(second)["a"] != pids(first)["a"]
    assert processes.find(first.records["a"]) is None


def test_what_judges_the_others_is_off_while_they_change(
    reconcile: Callable[..., State], web_service: Callable[..., Service]
) -> None:
    """Changing the engine on purpose must not page: Prometheus ends first and starts when the engine is ready."""
    engine, prometheus = web_service("engine"), web_service("prometheus", last=True)
    first = reconcile(engine, prometheus)
    second = reconcile(replace(engine, env={"CHANGED": "1"}), prometheus)
    created = {name: record.created for name, record in second.records.items()}

    assert pids(second)["prometheus"] != pids(first)["prometheus"]
    assert created["prometheus"] > created["engine"]


def test_what_is_not_wanted_any_more_is_ended(
    reconcile: Callable[..., State], web_service: Callable[..., Service]
) -> None:
    """Changing from an engine of ours to a URL ends our engine."""
    a, b = web_service("engine"), web_service("b")
    first = reconcile(a, b)
    second = reconcile(b)

    assert list(pids(second)) == ["b"]
    assert processes.find(first.records["engine"]) is None


def reloading(tmp_path: Path, web_service: Callable[..., Service], status: int) -> tuple[Service, Path, Path]:
    """A service that reloads by POST and answers it with *status*; its configuration and its log of posts."""
    config, posts = tmp_path / "c.yml", tmp_path / "posts"
    config.write_text("a: 1\n")
    port = web_service("x").url.rsplit(":", 1)[1]
    argv = (sys.executable, "-c", RELOADER, port, str(posts), str(status))
    service = Service(
        "p", argv, f"http://127.0.0.1:{port}", "/", config_files=(config,), reload_path="/-/reload"
    )
    return service, config, posts


def test_changed_configuration_is_reloaded_in_place(
    reconcile: Callable[..., State], web_service: Callable[..., Service], tmp_path: Path
) -> None:
    """A service that can reload keeps its process and is told once."""
    service, config, posts = reloading(tmp_path, web_service, 200)
    first = reconcile(service)
    config.write_text("a: 2\n")
    second = reconcile(service)
    third = reconcile(service)

    assert pids(first) == pids(second) == pids(third)
    assert posts.read_text() == "/-/reload\n"


def test_a_refused_reload_is_an_error(
    reconcile: Callable[..., State], web_service: Callable[..., Service], tmp_path: Path
) -> None:
    """Configuration that the service refuses is said, and the service keeps running."""
    service, config, _ = reloading(tmp_path, web_service, 500)
    first = reconcile(service)
    config.write_text("a: [\n")

    with pytest.raises(StackError, match=r"p keeps its old configuration: .*HTTP 500"):
        reconcile(service)
    assert processes.find(first.records["p"]) is not None


def test_a_failed_start_ends_what_it_started_and_keeps_the_rest(
    reconcile: Callable[..., State], web_service: Callable[..., Service], settings: Settings
) -> None:
    """When one service cannot start, the other new ones are ended; those that ran before stay recorded."""
    old = web_service("old")
    first = reconcile(old)
    new = web_service("new")
    broken = replace(web_service("broken"), argv=(sys.executable, "-c", "raise SystemExit('bad flag')"))

    with pytest.raises(StackError, match=r"broken ended while starting[\s\S]*bad flag"):
        reconcile(old, new, broken)

    left = state.load(settings.state_file)
    assert pids(left) == pids(first)
    assert processes.find(first.records["old"]) is not None


def test_a_port_held_by_another_is_named(
    reconcile: Callable[..., State],
    web_service: Callable[..., Service],
    started: Callable[[Service], state.Record],
    heard: Reporter,
) -> None:
    """A port that somebody else listens on is an error that names port, holder and mend."""
    theirs = web_service("theirs")
    record = started(theirs)
    processes.wait_ready(theirs, record, heard)
    port = theirs.url.rsplit(":", 1)[1]
    ours = replace(web_service("ours"), url=theirs.url)

    with pytest.raises(
        StackError, match=rf"(?s)port {port} \(ours\) is held by process {record.pid} .*\n.*--base-port"
    ):
        reconcile(ours)
    assert processes.find(record) is not None


def test_down_ends_in_reverse_order_and_forgets(
    reconcile: Callable[..., State], web_service: Callable[..., Service], settings: Settings, heard: Reporter
) -> None:
    """Down names what it ended, last started first; a second down has nothing to do."""
    now = reconcile(web_service("a"), web_service("b", last=True))

    assert launcher.down(settings, heard) == ["b", "a"]
    assert all(processes.find(record) is None for record in now.records.values())
    assert not settings.state_file.exists()
    assert launcher.down(settings, heard) == []


def test_down_with_a_stale_state_file_ends_nothing(
    web_service: Callable[..., Service],
    started: Callable[[Service], state.Record],
    settings: Settings,
    heard: Reporter,
) -> None:
    """A state file from before a reboot names numbers that are others' now: they are left alone."""
    record = started(web_service("theirs"))
    stale = replace(record, created=record.created - 86400)
    state.save(settings.state_file, State(19000, WISH, {"theirs": stale}))

    assert launcher.down(settings, heard) == []
    assert processes.find(record) is not None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A run folder below a file is refused with the mend."""
    (tmp_path / "file").write_text("")

    with pytest.raises(StackError, match=r"file/run cannot be made \(Not a directory\); .*--dir"):
        launcher.require_writable(tmp_path / "file" / "run")
