"""What a phase works with: the running stack, the engine, the clock of notices, and what was found so far."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import urllib3

from inferwatch.loop import notices
from inferwatch.loop.compare import Point, Snapshot, parse
from inferwatch.loop.engine import RealEngine
from inferwatch.loop.plan import LoopPlan
from inferwatch.stack import vllm_cpu
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from loadtests.plan import Arrival
from loadtests.run import LoadProcess
from slo.names import canary, engine
from slo.spec import Spec

QUIET_TIMEOUT_SECONDS = 60.0


@dataclass
class Findings:
    """What the loop reports; a failure is a sentence, and one is enough for exit 1."""

    fault_to_notification_s: dict[str, float | None] = field(default_factory=dict)
    counts: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    quantiles: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    counts_match: bool = True
    quantiles_within_bucket: bool = True
    still_firing: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def fail(self, sentence: str) -> None:
        """Note what did not hold and go on: later phases are still worth running."""
        self.failures.append(sentence)


@dataclass(frozen=True)
class Bench:
    """One loop's stack."""

    spec: Spec
    settings: Settings
    plan: LoopPlan
    engine: RealEngine
    reporter: Reporter
    folder: Path
    found: Findings

    def load(self, name: str, arrival: Arrival, abort_share: float = 0.0) -> LoadProcess:
        """Start a load run whose records go into a folder of that name."""
        from inferwatch.loop.load import start

        return start(self.engine.url, vllm_cpu.SERVED_MODEL, self.folder / name, arrival, abort_share)

    def await_page(self, fault: str, names: tuple[str, ...], since: float, promised: bool) -> None:
        """
        Wait for the page that a fault at *since* must bring, and note the delay.

        *promised*: the delay is held against the notification promise of slo.yaml.
        """
        notice = notices.wait_for_any(
            self.settings.notifications_file, names, "firing", since, self.plan.page_wait_seconds
        )
        delay = round(notice.received_at - since, 1) if notice else None
        self.found.fault_to_notification_s[fault] = delay
        promise = self.spec.intervals.notification_promise_seconds
        if notice is None or delay is None:
            self.found.fail(
                f"{fault}: none of {', '.join(names)} came in {self.plan.page_wait_seconds:.0f} s"
            )
            return
        self.reporter.say(f"{fault}: {notice.alert} delivered after {delay} s: {notice.summary}")
        if promised and delay > promise:
            self.found.fail(f"{fault}: {notice.alert} came after {delay} s, promised are {promise} s")

    def snapshot(self) -> Point:
        """
        Engine (through /probe) and canary at one quiet point: nothing runs, waits or is being asked.

        Raises TimeoutError when the engine does not become quiet.
        """
        deadline = time.monotonic() + QUIET_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            before = self._canary()
            probed = parse(
                self._get(f"{self.settings.url('exporter-engine')}/probe?target={self.engine.url}")
            )
            after = self._canary()
            still = before.samples.get(canary.REQUESTS) == after.samples.get(canary.REQUESTS)
            idle = probed.total(engine.REQUESTS_RUNNING) == 0 == probed.total(engine.REQUESTS_WAITING)
            if still and idle and before.total(canary.IN_FLIGHT) == 0 == after.total(canary.IN_FLIGHT):
                return Point(probed, after)
            time.sleep(0.2)
        raise TimeoutError(f"the engine is not quiet after {QUIET_TIMEOUT_SECONDS:.0f} s")

    def _canary(self) -> Snapshot:
        return parse(self._get(f"{self.settings.url('exporter-canary')}/metrics"))

    def _get(self, url: str) -> str:
        answer = urllib3.request("GET", url, timeout=10.0, retries=False)
        if answer.status != 200:
            raise RuntimeError(f"{url} answered HTTP {answer.status}: {answer.data[:200]!r}")
        return answer.data.decode("utf-8")


Phase = Callable[[Bench], None]
