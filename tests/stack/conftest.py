"""What the launcher's tests share: a reporter that remembers, settings in a temporary folder, free ports."""

import io
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from inferwatch.stack import processes
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Record

ROOT = Path(__file__).resolve().parents[2]


class Heard(Reporter):
    """A reporter whose lines a test can read."""

    def __init__(self) -> None:
        self.sink = io.StringIO()
        super().__init__(Console(file=self.sink, width=200))

    @property
    def text(self) -> str:
        return self.sink.getvalue()


@pytest.fixture
def heard() -> Heard:
    """What was reported."""
    return Heard()


def free_port() -> int:
    """A loopback port that nothing holds now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """This checkout, with run folder and cache in a temporary one."""
    return Settings(
        root=ROOT, run_dir=tmp_path / "run", cache_dir=tmp_path / "cache", spec_path=ROOT / "slo.yaml"
    )


@pytest.fixture
def web_service(tmp_path: Path) -> Callable[..., Service]:
    """Make services that answer HTTP 200 at /, each on a port of its own."""

    def make(name: str, *extra: str, **fields: object) -> Service:
        port = free_port()
        folder = tmp_path / "served"
        folder.mkdir(exist_ok=True)
        argv = (
            sys.executable,
            "-m",
            "http.server",
            str(port),
            "--bind",
            "127.0.0.1",
            "--directory",
            str(folder),
        )
        return Service(name, (*argv, *extra), f"http://127.0.0.1:{port}", "/", **fields)  # type: ignore[arg-type] # a test's free choice

    return make


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[Service], Record]]:
    """Start services that are ended with the test, whatever it does."""
    records: list[Record] = []

    def start(service: Service) -> Record:
        records.append(processes.start(service, tmp_path / "logs"))
        return records[-1]

    yield start
    for record in records:
        processes.stop(record, grace_seconds=2.0)
