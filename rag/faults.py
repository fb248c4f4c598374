"""A stage by name -> slowed, failed, or its pool starved, until told otherwise."""

import asyncio
import random
from dataclasses import asdict, dataclass
from typing import Any

from rag.pool import Pool
from slo.names.rag import STAGES

MAX_DELAY_SECONDS = 60.0
# Which pool a stage draws from; the other stages have none to starve.
STAGE_POOLS = {"embedding": "embedding", "retrieval": "index", "rerank": "embedding", "generate": "engine"}


class FaultError(ValueError):
    """A fault that cannot be set; the text says what can."""


class InjectedFault(RuntimeError):
    """A stage was told to fail."""

    error_type = "injected"


@dataclass(frozen=True)
class Fault:
    """*delay_seconds* before the stage's work; a *fail_ratio* of its calls fail; *pool_size* while it lasts."""

    delay_seconds: float = 0.0
    fail_ratio: float = 0.0
    pool_size: int | None = None


class Faults:
    """The faults in force; none at the start."""

    def __init__(self, pools: dict[str, Pool]) -> None:
        self._pools = pools
        self._sizes = {name: pool.size for name, pool in pools.items()}
        self._faults: dict[str, Fault] = {}
        self._random = random.Random(7)

    def set(self, body: object) -> None:
        """One fault from a JSON object with `stage` and any of Fault's fields. Raises FaultError."""
        if not isinstance(body, dict) or body.get("stage") not in STAGES:
            raise FaultError(f"stage: name one of {', '.join(STAGES)}")
        stage, fields = body["stage"], {key: value for key, value in body.items() if key != "stage"}
        if unknown := set(fields) - set(asdict(Fault())):
            raise FaultError(
                f"{', '.join(sorted(unknown))}: unknown; use delay_seconds, fail_ratio, pool_size"
            )
        self._check(stage, fields)
        self._faults[stage] = Fault(**fields)
        self._resize()

    def clear(self) -> None:
        """All is well again."""
        self._faults.clear()
        self._resize()

    def shown(self) -> dict[str, Any]:
        """The faults in force by stage."""
        return {stage: asdict(fault) for stage, fault in self._faults.items()}

    async def meet(self, stage: str) -> None:
        """Sleep or raise as the stage's fault says; at once where it has none."""
        fault = self._faults.get(stage)
        if fault is None:
            return
        if fault.delay_seconds:
            await asyncio.sleep(fault.delay_seconds)
        if fault.fail_ratio and self._random.random() < fault.fail_ratio:
            raise InjectedFault(f"{stage} was told to fail")

    def _check(self, stage: str, fields: dict[str, Any]) -> None:
        def number(key: str, most: float) -> None:
            value = fields.get(key, 0)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise FaultError(f"{key}: {value!r} is no number from 0 to {most:g}")

        number("delay_seconds", MAX_DELAY_SECONDS)
        number("fail_ratio", 1)
        size = fields.get("pool_size")
        if size is None:
            return
        if stage not in STAGE_POOLS:
            raise FaultError(f"pool_size: {stage} uses no pool; one of {', '.join(STAGE_POOLS)} does")
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise FaultError(f"pool_size: {size!r} is no whole number from 1 on")

    def _resize(self) -> None:
        wanted = dict(self._sizes)
        for stage, fault in self._faults.items():
            if fault.pool_size is not None:
                wanted[STAGE_POOLS[stage]] = fault.pool_size
        for name, size in wanted.items():
            self._pools[name].resize(size)
