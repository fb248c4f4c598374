"""A real vLLM on CPU that the loop starts, hangs, kills and starts again."""

import os
import signal
from collections.abc import Sequence

from inferwatch.promapi.transport import Transport
from inferwatch.stack import processes, vllm_cpu
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from inferwatch.stack.state import Record


class RealEngine:
    """
    One vLLM server and its engine core, bound to one CPU core.

    Use as a context manager: whatever happens, what it started is ended.
    """

    def __init__(
        self, installed: vllm_cpu.VllmCpu, settings: Settings, reporter: Reporter, core: int
    ) -> None:
        self._installed = installed
        self._settings = settings
        self._reporter = reporter
        self._record: Record | None = None
        self._core = core
        self.url = settings.url("engine")

    def __enter__(self) -> "RealEngine":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, extra_args: Sequence[str] = ()) -> None:
        """Start the server and return when /health answers; StackError when it does not."""
        service = vllm_cpu.service(self._installed, self._settings, extra_args, self._core)
        self._record = processes.start(service, self._settings.logs_dir)
        with self._reporter.task("starting vLLM"):
            processes.wait_ready(service, self._record, self._reporter)

    def stop(self) -> None:
        """End the server, its core too, stopped or not."""
        if self._record is not None:
            processes.stop(self._record)
            self._record = None

    @property
    def pid(self) -> int:
        """Process id of the API server."""
        if self._record is None:
            raise RuntimeError("the engine is not running")
        return self._record.pid

    def version(self) -> str:
        """What the live server says it is."""
        with Transport(self.url) as client:
            return str(client.json("GET", "/version")["version"])

    def hang(self) -> None:
        """Stop the engine core where it stands; the API server goes on answering /health."""
        os.kill(vllm_cpu.engine_core_pid(self.pid), signal.SIGSTOP)

    def resume(self) -> None:
        """Let a hung core go on."""
        os.kill(vllm_cpu.engine_core_pid(self.pid), signal.SIGCONT)

    def kill_core(self) -> None:
        """Kill the engine core, as the kernel's out-of-memory killer would."""
        os.kill(vllm_cpu.engine_core_pid(self.pid), signal.SIGKILL)
