"""One holder at a time, across processes: builds, installs and changes of the running stack."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inferwatch.stack.progress import Reporter


@contextmanager
def held(path: Path, reporter: Reporter, doing: str) -> Iterator[None]:
    """Hold the lock file *path*; says so once when another process holds it, then waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reporter.say(f"waiting: another process is {doing} ({path})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
