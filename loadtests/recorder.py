"""Finished requests and the client's own health -> JSONL files that survive the death of the process."""

import gc
import json
import time
from pathlib import Path
from typing import BinaryIO

import gevent
import gevent.lock

from loadtests.recorder_files import health_file, records_file
from loadtests.records import RequestRecord, to_line
from loadtests.transport import now_ns, wall_offset_ns

FLUSH_S = 0.25
_LAG_PROBE_S = 0.05
_BUFFER_BYTES = 1024 * 1024


class Recorder:
    """Writes records as they come, flushed four times a second: a killed client loses at most that much.

    Beside them one line a second on the client itself: `cpu_ratio` (of one core), `lag_s` (every lateness of a
    50 ms sleep, so how late anything else in this process was), and how many requests are in flight.
    """

    def __init__(self, folder: Path, worker: int) -> None:
        self._records: BinaryIO = records_file(folder, worker).open("ab", _BUFFER_BYTES)
        self._health: BinaryIO = health_file(folder, worker).open("ab", _BUFFER_BYTES)
        self._worker = worker
        self._closing = gevent.lock.BoundedSemaphore(1)
        self._watch: gevent.Greenlet | None = None
        self._lags: list[float] = []
        self._sampled_ns, self._sampled_cpu_s = now_ns(), time.process_time()
        self._sampled_due = 0
        self.in_flight = 0
        self.due = 0
        self.written = 0

    def start(self) -> None:
        """Begin to watch the client's health; the cyclic garbage collector is tamed for the run."""
        gc.collect()
        gc.freeze()
        gc.disable()  # it pauses the loop for milliseconds; young garbage is collected between samples
        self._watch = gevent.spawn(self._watch_health)

    def write(self, record: RequestRecord) -> None:
        """Take a finished attempt."""
        self._records.write(to_line(record).encode())
        self.written += 1

    def close(self) -> None:
        """Flush and close; nothing can be written after. Who calls while another greenlet does waits for it."""
        with self._closing:
            if self._watch is not None:
                self._watch.kill()
                self._watch = None
                gc.enable()
                self._sample(now_ns())
            for file in (self._records, self._health):
                file.close()

    def _watch_health(self) -> None:
        flushed = self._sampled_ns = now_ns()
        self._sampled_cpu_s = time.process_time()
        while True:
            due = now_ns() + int(_LAG_PROBE_S * 1e9)
            gevent.sleep(_LAG_PROBE_S)
            now = now_ns()
            self._lags.append(max(0.0, (now - due) / 1e9))
            if now - flushed >= FLUSH_S * 1e9:
                flushed = now
                self._records.flush()
            if now - self._sampled_ns >= 1e9:
                self._sample(now)
                gc.collect(1)

    def _sample(self, now: int) -> None:
        cpu_s = time.process_time()
        seconds = (now - self._sampled_ns) / 1e9
        line = {
            "worker": self._worker,
            "at_s": now / 1e9,
            "wall_offset_s": wall_offset_ns() / 1e9,
            "seconds": seconds,
            "cpu_ratio": (cpu_s - self._sampled_cpu_s) / seconds,
            "lag_s": [round(lag, 9) for lag in self._lags],
            "in_flight": self.in_flight,
            "due": self.due,
            "due_per_s": (self.due - self._sampled_due) / seconds,
            "written": self.written,
        }
        self._health.write(json.dumps(line).encode() + b"\n")
        self._health.flush()
        self._sampled_ns, self._sampled_cpu_s, self._lags = now, cpu_s, []
        self._sampled_due = self.due
