"""A command line with flags -> an engine process that is ready, and that is gone afterwards."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

FlagValue = str | int | float | bool
_POLL_S = 0.25
_STOP_GRACE_S = 20.0


class EngineError(RuntimeError):
    """The engine did not start or died; the message names its log."""


@dataclass(frozen=True, slots=True)
class Start:
    """What to start: command, extra environment, cores to stay on (empty: all), and when it counts as ready."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    ready_s: float = 180.0
    ready_path: str = "/health"


def with_flags(command: list[str], flags: dict[str, FlagValue]) -> list[str]:
    """*command* with flags appended: True becomes `--flag`, False `--no-flag`, anything else `--flag value`."""
    extended = list(command)
    for name, value in flags.items():
        flag = name.replace("_", "-")
        if value is True:
            extended.append(f"--{flag}")
        elif value is False:
            extended.append(f"--no-{flag}")
        else:
            extended += [f"--{flag}", str(value)]
    return extended


@contextlib.contextmanager
def running(start: Start, base_url: str, log: Path) -> Iterator[int]:
    """Start the engine, wait until *base_url* answers 200, yield its pid; its whole process group ends after.

    Raises EngineError when it exits or is not ready in time, or when something else answers there already.
    """
    url = base_url + start.ready_path
    if _is_ready(url):
        raise EngineError(f"{base_url}: something answers there already; stop it or choose another port")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            start.command,
            env={**os.environ, **start.env},
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        if start.cores:
            os.sched_setaffinity(process.pid, start.cores)
        _wait_ready(process, url, start.ready_s, log)
        yield process.pid
    finally:
        _end(process)


def _wait_ready(process: subprocess.Popen[bytes], url: str, ready_s: float, log: Path) -> None:
    deadline = time.monotonic() + ready_s
    while not _is_ready(url):
        if process.poll() is not None:
            raise EngineError(
                f"the engine ended with code {process.returncode} before it was ready; see {log}"
            )
        if time.monotonic() > deadline:
            raise EngineError(f"{url} did not answer 200 within {ready_s:g} s; see {log}")
        time.sleep(_POLL_S)


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the engine and every child of it: those that outlive SIGTERM are killed."""
    for number, grace_s in ((signal.SIGTERM, _STOP_GRACE_S), (signal.SIGKILL, _STOP_GRACE_S)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
    process.wait()
