"""One row under way: when its fault begins and ends, and what was delivered because of it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from inferwatch.loop.notices import Notice
from inferwatch.scenarios.node_theory import NoTheory
from inferwatch.scenarios.row import Expected, Row
from inferwatch.stack.errors import StackError

LATE_FACTOR = 1.25
"""How much later than theory a notification may come before the row fails; fixed before any run."""
PATIENCE_SECONDS = 45.0
"""How much longer a late one is waited for, so that the report has its delay."""


class Phase(Enum):
    """Where a row stands."""

    WAITING = "waiting"
    FAULT = "fault"
    RECOVERY = "recovery"
    DONE = "done"


@dataclass
class Course:
    """
    A row, its clock and its finds; times are Unix seconds.

    Attributes:
        begin, end: bring and mend the fault.
        theories: the most seconds that theory allows for each expected alert, once the fault began.
        retold_seconds: after an end that is only implied, until what still fires has been told again.
        holds: alert -> what is said of its hold, where that is shorter in this stage than it ships.
        loads: load average of the machine at each look while the row was under way.
        trouble: why the fault could not be brought or mended.
    """

    row: Row
    begin: Callable[[], None]
    end: Callable[[], None]
    theory: Callable[[Expected], float]
    retold_seconds: float = 0.0
    holds: Mapping[str, str] = field(default_factory=dict)
    phase: Phase = Phase.WAITING
    fault_at: float = 0.0
    mended_at: float = 0.0
    theories: tuple[float, ...] = ()
    loads: list[float] = field(default_factory=list)
    trouble: str = ""

    @property
    def is_mended(self) -> bool:
        """Whether rows that must come after may begin."""
        return self.phase in (Phase.RECOVERY, Phase.DONE)

    def step(self, now: float, notices: Sequence[Notice]) -> None:
        """Look at what was delivered so far, all of it, and go on to the next phase where it is time."""
        if self.phase is Phase.DONE:
            return
        self.loads.append(os.getloadavg()[0])
        try:
            self._go_on(now, notices)
        except (StackError, NoTheory) as error:
            self.trouble, self.phase = str(error), Phase.DONE

    def _go_on(self, now: float, notices: Sequence[Notice]) -> None:
        if self.phase is Phase.WAITING:
            self._start(now)
        elif self.phase is Phase.FAULT and self._is_fault_over(now, notices):
            self._mend(now)
        elif self.phase is Phase.RECOVERY and self._is_recovery_over(now, notices):
            self.phase = Phase.DONE

    def _start(self, now: float) -> None:
        self.fault_at = now
        self.theories = tuple(self.theory(expected) for expected in self.row.fires)
        self.begin()
        self.phase = Phase.FAULT

    def _is_fault_over(self, now: float, notices: Sequence[Notice]) -> bool:
        meanwhile = [one for one in self.row.fires if not one.afterwards]
        longest = self._patience(meanwhile)
        least = max(self.row.fault.mends_itself_seconds or 0.0, self.row.fault_seconds)
        if now < self.fault_at + least:
            return False
        return now > self.fault_at + longest or all(
            self.delivered(expected, notices) is not None for expected in meanwhile
        )

    def _patience(self, awaited: Sequence[Expected]) -> float:
        """The most seconds that any of them is waited for."""
        bounds = [theory for one, theory in zip(self.row.fires, self.theories, strict=True) if one in awaited]
        return max((LATE_FACTOR * bound + PATIENCE_SECONDS for bound in bounds), default=0.0)

    def _mend(self, now: float) -> None:
        own = self.row.fault.mends_itself_seconds
        self.end()
        self.mended_at = now if own is None else self.fault_at + own
        self.phase = Phase.RECOVERY

    def _is_recovery_over(self, now: float, notices: Sequence[Notice]) -> bool:
        missing = [one for one in self.row.fires if one.afterwards and self.delivered(one, notices) is None]
        if missing and now <= self.mended_at + self._patience(missing):
            return False
        awaited = [
            one
            for one in self.row.fires
            if one.recovers_seconds is not None and self.delivered(one, notices) is not None
        ]
        longest = max((one.recovers_seconds or 0.0 for one in awaited), default=0.0)
        return now > self.mended_at + longest or all(
            (over := self.recovered(one, notices)) is not None
            and (not over.implied or now > over.received_at + self.retold_seconds)
            for one in awaited
        )

    def delivered(self, expected: Expected, notices: Sequence[Notice]) -> Notice | None:
        """The first notice that the fault was to bring."""
        return next(
            (
                n
                for n in notices
                if self.row.owns(n)
                and expected.matches(n)
                and n.status == expected.status
                and n.received_at >= self.fault_at
            ),
            None,
        )

    def since(self, expected: Expected) -> float:
        """From when the time to its notification counts."""
        return self.mended_at if expected.afterwards else self.fault_at

    def recovered(self, expected: Expected, notices: Sequence[Notice]) -> Notice | None:
        """The notice that ended the alert for good: the first that says so after the last that does not."""
        over = "resolved" if expected.status == "firing" else "firing"
        ends: dict[tuple[tuple[str, str], ...], Notice | None] = {}
        for notice in notices:
            if notice.implied and not 0 < self.mended_at <= notice.received_at:
                continue  # the fault is still there: what fires is told again
            if self.row.owns(notice) and expected.matches(notice) and notice.received_at >= self.fault_at:
                key = tuple(sorted(notice.labels.items()))
                ends[key] = (ends.get(key) or notice) if notice.status == over else None
        found = [notice for notice in ends.values() if notice is not None]
        if not found or len(found) < len(ends):
            return None
        return max(found, key=lambda notice: notice.received_at)
