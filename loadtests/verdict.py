"""What a gate says: its checks, their outcomes, and the one exit code they come to."""

import enum
from dataclasses import dataclass
from typing import Any


class GateExit(enum.IntEnum):
    """Exit codes. What makes the numbers void comes before what they say."""

    PASSED = 0
    FAILED = 10
    NO_DATA = 11
    TOO_FEW_SAMPLES = 12
    RATE_NOT_REACHED = 13
    CLIENT_SATURATED = 14
    UNLIKE_BASELINE = 15
    INCONCLUSIVE = 16
    NOT_JUDGEABLE = 17
    CRASHED = 70


_PRECEDENCE = (
    GateExit.NO_DATA,
    GateExit.UNLIKE_BASELINE,
    GateExit.CLIENT_SATURATED,
    GateExit.RATE_NOT_REACHED,
    GateExit.FAILED,
    GateExit.TOO_FEW_SAMPLES,
    GateExit.NOT_JUDGEABLE,
    GateExit.INCONCLUSIVE,
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the verdict. `value` and `bound` in the gate's base unit, None where nothing could be measured."""

    name: str
    outcome: GateExit
    value: float | None
    bound: float | None
    detail: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """All checks, and the exit code they come to."""

    checks: tuple[Check, ...]

    @property
    def code(self) -> GateExit:
        """The worst outcome by precedence."""
        found = {check.outcome for check in self.checks}
        return next((code for code in _PRECEDENCE if code in found), GateExit.PASSED)


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """The verdict as JSON-ready data."""
    checks = [
        {
            "name": c.name,
            "outcome": c.outcome.name.lower(),
            "value": c.value,
            "bound": c.bound,
            "detail": c.detail,
        }
        for c in verdict.checks
    ]
    return {"outcome": verdict.code.name.lower(), "exit_code": int(verdict.code), "checks": checks}
