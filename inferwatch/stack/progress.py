"""What the launcher is doing -> lines for a log, or one moving line for a person at a terminal."""

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.status import Status

from inferwatch.stack.errors import StackError

TAIL_LINES = 15
QUIET_SECONDS = 20.0


class Reporter:
    """Says what happens on *console*: a spinner on a terminal, a line every 20 s elsewhere."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._status: Status | None = None
        self._told = 0.0

    def say(self, text: str) -> None:
        """One line that stays."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def task(self, doing: str) -> Iterator[None]:
        """While a long task runs: the spinner, or the line that says it began."""
        self._told = time.monotonic()
        if not self._console.is_terminal:
            self.say(f"{doing} …")
            yield
            return
        with self._console.status(doing) as self._status:
            yield
        self._status = None

    def progress(self, text: str) -> None:
        """How far the task is; may be called often."""
        if self._status is not None:
            self._status.update(text)
        elif time.monotonic() - self._told >= QUIET_SECONDS:
            self._told = time.monotonic()
            self.say(text)


def to_stderr() -> Reporter:
    """The reporter of programs whose standard output is for results."""
    return Reporter(Console(stderr=True))


def run_logged(
    argv: Sequence[str],
    *,
    log: Path,
    reporter: Reporter,
    doing: str,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """
    Run *argv* to its end, appending its output to *log* and reporting seconds spent and the newest line.

    Raises StackError with the last lines when the command cannot start or fails.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with reporter.task(doing), log.open("ab") as sink:
        try:
            process = subprocess.Popen(
                list(argv), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise StackError(f"{doing}: {argv[0]} cannot be run ({error.strerror})") from error
        started = time.monotonic()
        try:
            while process.poll() is None:
                time.sleep(0.2)
                reporter.progress(f"{doing} · {time.monotonic() - started:.0f} s · {last_lines(log, 1)[:80]}")
        except BaseException:
            process.terminate()
            process.wait()
            raise
    if process.returncode != 0:
        raise StackError(
            f"{doing} failed (exit {process.returncode}); the end of {log}:\n{last_lines(log, TAIL_LINES)}"
        )


def last_lines(log: Path, count: int) -> str:
    """Last *count* lines of a log, empty when there is none."""
    try:
        with log.open("rb") as handle:
            handle.seek(max(0, log.stat().st_size - 16_384))
            lines = handle.read().decode("utf-8", "replace").rstrip().splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(lines[-count:])
