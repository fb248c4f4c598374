"""A command line with flags -> an engine process that is ready, and that is gone afterwards."""

import contextlib
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

FlagValue = str | int | float | bool
_POLL_S = 0.25
_STOP_GRACE_S = 20.0


class EngineError(RuntimeError):
    """The engine did not start or died; the message names its log."""


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
def running(
    command: list[str], base_url: str, log: Path, *, ready_s: float, path: str = "/health"
) -> Iterator[int]:
    """Start *command*, wait until *base_url* + *path* answers 200, yield its pid; its process group ends after.

    Raises EngineError when it exits or is not ready within *ready_s* seconds, or when something else answers there
    already.
    """
    if _is_ready(base_url + path):
        raise EngineError(f"{base_url}: something answers there already; stop it or choose another port")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
        )
    try:
        _wait_ready(process, base_url + path, ready_s, log)
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
