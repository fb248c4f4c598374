"""What the recorded things of a row show: a GPU, an engine core, a tenant, an engine's page; before and under a fault."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

WHOLE_NODE = "node"
"""The node agent that watches all rows which need none of their own."""


@dataclass(frozen=True)
class Card:
    """
    A recorded H200 and what is edited in its answers; ratios from 0 to 1.

    Attributes:
        frame: the recorded moment that everything which is not edited comes from.
        active: share of time in which the SMs work; as recorded when None.
        memory_used: share of the memory that is not reserved.
        clock_events: NVML's mask of reasons that hold the clocks.
        uncorrected: ECC errors since the last reset.
        remap_pending, remap_failed: rows to be replaced.
        xid: code of the one XID event that comes with this state; 0: none.
        twin: a second card, idle, stands beside this one.
        lost: that second one has fallen off the bus.
        driver_mismatch: the library does not fit the kernel module, so that nothing can be opened.
    """

    frame: Literal["idle", "memory"] = "idle"
    active: float | None = None
    memory_used: float | None = None
    clock_events: int | None = None
    uncorrected: int = 0
    remap_pending: bool = False
    remap_failed: bool = False
    xid: int = 0
    twin: bool = False
    lost: bool = False
    driver_mismatch: bool = False


@dataclass(frozen=True)
class Core:
    """An engine core bound to two CPUs: shares of time it runs, it waits for one of them, and others run there."""

    busy: float = 0.6
    waited: float = 0.0
    others: float = 0.1


@dataclass(frozen=True)
class Tenant:
    """A cgroup: share of its CFS periods without quota, share of time stalled on memory, kills so far."""

    throttled: float = 0.0
    stalled: float = 0.0
    oom_kills: int = 0


@dataclass(frozen=True)
class Page:
    """
    A recorded vLLM page whose traffic goes on.

    Attributes:
        running: requests under way.
        bounds: the only bounds of whole requests' latency that it has; as recorded when empty. Of the row's last
            engine, so that an engine before it keeps its own.
        off_scale: share of new requests that last longer than the highest bound.
    """

    running: int = 2
    bounds: tuple[str, ...] = ()
    off_scale: float = 0.0


@dataclass(frozen=True)
class Shown:
    """
    All recorded things of a row.

    Attributes:
        node: the node agent that sees them.
    """

    card: Card | None = None
    core: Core | None = None
    tenant: Tenant | None = None
    page: Page | None = None
    node: str = WHOLE_NODE


def uuid(row: str) -> str:
    """The GPU of a row."""
    return f"GPU-{row}"


def numbers(shown: Shown) -> dict[str, Any]:
    """What the process that moves the numbers is told of a row."""
    things = {"core": shown.core, "tenant": shown.tenant, "page": shown.page}
    return {name: asdict(thing) for name, thing in things.items() if thing is not None}


def changed(before: Shown, after: Shown) -> Mapping[str, str]:
    """Attribute -> value where the two differ, for people."""
    found: dict[str, str] = {}
    for name in ("card", "core", "tenant", "page"):
        old, new = getattr(before, name), getattr(after, name)
        if new is None or new == old:
            continue
        base = asdict(old) if old is not None else {}
        values = {key: value for key, value in asdict(new).items() if base.get(key) != value}
        found |= {key: "recorded" if value is None else str(value) for key, value in values.items()}
    return found
