"""What a check says: fault, ok or unknown, with the evidence, why it matters and the flag to set."""

from dataclasses import dataclass
from typing import Literal

State = Literal["fault", "ok", "unknown"]


@dataclass(frozen=True)
class Finding:
    """
    One check on one engine.

    Attributes:
        evidence: what was seen, with its numbers; for `unknown`, what is missing to say more.
        why: why it matters; empty unless it is a fault.
        mend: the flag or the change that ends it; empty unless it is a fault.
    """

    check: str
    engine: str
    state: State
    evidence: str
    why: str = ""
    mend: str = ""
