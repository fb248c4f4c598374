"""Another host's master -> load workers here, until the run is over. Imports neither locust nor gevent."""

import os
import signal
import subprocess
from pathlib import Path

from loadtests.exits import NOT_OVER
from loadtests.launch import failure, start, worker_command
from loadtests.run import LoadError, refuse_used

_STOP_GRACE_S = 10.0


class JoinedWorkers:
    """Workers under way on this host; `wait` for their end or `stop` them at once."""

    def __init__(self, master: tuple[str, int], folder: Path, processes: int = 1) -> None:
        """Start *processes* workers of the master at (host, port); *folder* is made and must hold no earlier run."""
        refuse_used(folder)
        self.folder = folder
        self._process = start(worker_command(master, folder, processes), folder)

    def wait(self, timeout_s: float | None = None) -> bool:
        """True when they carried out their part of the plan, False when the run was ended before; raises LoadError
        when they failed or found no master, subprocess.TimeoutExpired when they are late."""
        code = self._process.wait(timeout_s)
        if code not in (0, NOT_OVER):
            raise LoadError(failure(code, self.folder))
        return code == 0

    def stop(self) -> None:
        """End them at once; their run fails."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(_STOP_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
