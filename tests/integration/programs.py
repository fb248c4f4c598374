"""A real Prometheus or Alertmanager of a test's own, on a free port."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import urllib3


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(path: Path, folder: Path, *words: str, env: Mapping[str, str] | None = None) -> Iterator[str]:
    """The program, its log in *folder*; its URL once it is ready. *env* comes on top of ours."""
    url = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(path), f"--web.listen-address={url}", *words],
            stdout=log,
            stderr=log,
            env={**os.environ, **(env or {})},
        )
    try:
        _wait(f"http://{url}/-/ready", folder / "log")
        yield f"http://{url}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait(url: str, log: Path) -> None:
    deadline = time.monotonic() + 60
    while not _ready(url):
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)


def _ready(url: str) -> bool:
    try:
        return urllib3.request("GET", url, retries=False, timeout=2).status == 200
    except urllib3.exceptions.HTTPError:
        return False
