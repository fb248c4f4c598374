"""Work on a cadence, each in a thread of its own: a slow or failing source holds up no other."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)


@dataclass
class Round:
    """One source: what to do, how often, and how it went. Times are monotonic seconds."""

    name: str
    seconds: float
    work: Callable[[float], None]
    ticks: int = 0
    late: int = 0
    cpu_seconds: float = 0.0
    duration: float = 0.0
    good_at: float | None = None
    success: bool = False
    _failed_with: str = field(default="", repr=False)

    def once(self, now: float) -> None:
        """Do the work once; a fault is kept, logged when it is new, and never raised."""
        started, cpu = time.perf_counter(), time.thread_time()
        try:
            self.work(now)
        except Exception as error:
            self.success = False
            if str(error) != self._failed_with:
                log.exception("%s failed", self.name)
            self._failed_with = str(error)
        else:
            self.success, self.good_at, self._failed_with = True, now, ""
        self.duration = time.perf_counter() - started
        self.cpu_seconds += time.thread_time() - cpu
        self.ticks += 1

    def run(self, stop: threading.Event) -> None:
        """Repeat until told to stop. A round that began late is not made up for."""
        due = time.monotonic()
        while not stop.is_set():
            now = time.monotonic()
            if now - due >= self.seconds:
                self.late += 1
                due = now
            self.once(now)
            due += self.seconds
            stop.wait(max(0.0, due - time.monotonic()))


class Rounds:
    """All of the agent's rounds and their threads."""

    def __init__(self, rounds: tuple[Round, ...]) -> None:
        self.all = rounds
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """One daemon thread a round: a call that hangs in the driver cannot keep the agent from ending."""
        for one in self.all:
            thread = threading.Thread(target=one.run, args=(self._stop,), name=one.name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Ask all to end and wait for those that do."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout_seconds)

    @property
    def stopping(self) -> threading.Event:
        """Set once stop() was called."""
        return self._stop
