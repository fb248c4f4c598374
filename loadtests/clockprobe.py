"""Locust messages between a worker and its master -> that worker's clock, measured. Runs on gevent."""

import functools
from collections.abc import Callable
from typing import Any

from gevent.event import AsyncResult

from loadtests.clocks import Exchange, WorkerClock, best_offset, boot_id
from loadtests.transport import now_ns, wall_offset_ns

_ASK, _ANSWER = "clock_ask", "clock_answer"
_QUESTIONS = 9
_PATIENCE_S = 3.0


def answer_workers(runner: Any, decide_begin_s: Callable[[], float]) -> None:
    """On a master: tell each worker that asks what the clocks say, and when the plan begins (decided at the first)."""
    begin_s = functools.cache(decide_begin_s)

    def asked(environment: Any, msg: Any, **_: Any) -> None:
        answer = {
            "begin_s": begin_s(),
            "master_s": now_ns() / 1e9,
            "boot_id": boot_id(),
            "wall_offset_s": wall_offset_ns() / 1e9,
        }
        environment.runner.send_message(_ANSWER, answer, client_id=msg.node_id)

    runner.register_message(_ASK, asked)


class ClockProbe:
    """On a worker: asks its master. `begin_s`: time zero on the master's monotonic clock, known once it was asked."""

    def __init__(self, runner: Any) -> None:
        self.begin_s = 0.0
        self._runner = runner
        self._answer: AsyncResult[dict[str, Any]] = AsyncResult()
        runner.register_message(_ANSWER, lambda msg, **_: self._answer.set(msg.data))

    def measure(self) -> WorkerClock:
        """Ask a few times; raises gevent.Timeout when the master does not answer."""
        exchanges, said = [], {}
        for _ in range(_QUESTIONS):
            self._answer = AsyncResult()
            asked_s = now_ns() / 1e9
            self._runner.send_message(_ASK, {})
            said = self._answer.get(timeout=_PATIENCE_S)
            exchanges.append(Exchange(asked_s, said["master_s"], now_ns() / 1e9))
        self.begin_s = said["begin_s"]
        offset_s, error_s = best_offset(exchanges)
        return WorkerClock(
            worker=self._runner.worker_index,
            boot_id=boot_id(),
            master_boot_id=said["boot_id"],
            master_wall_offset_s=said["wall_offset_s"],
            offset_s=offset_s,
            error_s=error_s,
            wall_offset_s=offset_s + said["wall_offset_s"] - wall_offset_ns() / 1e9,
            asked=len(exchanges),
        )
