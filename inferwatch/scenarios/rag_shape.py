"""What a row's RAG service is made of, and who asks it how; before and under a fault."""

from dataclasses import dataclass

SIM_MODEL = "sim-llama"
FAR_MODEL = "sim-far"
"""Served by an engine of its own behind the link, which writes that engine's spans."""


@dataclass(frozen=True)
class Instance:
    """
    One process of the service; all of them answer under the row's name.

    Attributes:
        version: of its embedding model.
        context_tokens: what its prompts may hold of passages.
        sends_spans: False: its collector's address is one where nobody listens.
        linked: it reaches its engine through the link.
    """

    version: str = "v1"
    context_tokens: int = 600
    sends_spans: bool = True
    linked: bool = False
    model: str = SIM_MODEL


@dataclass(frozen=True)
class Users:
    """
    The row's users.

    Attributes:
        ask: instances that they ask, in turn; none: nobody asks.
        per_second: requests, of all of them.
        together: how many come at once.
        fresh: no question is asked twice; else twelve are asked over and over.
        upload_seconds: how long the body of a request is on its way.
    """

    ask: tuple[int, ...] = (0,)
    per_second: float = 1.0
    together: int = 1
    fresh: bool = False
    upload_seconds: float = 0.0

    def __str__(self) -> str:
        who = ", ".join(map(str, self.ask)) or "nobody"
        return (
            f"asking {who} at {self.per_second:g}/s"
            + (", never the same" if self.fresh else "")
            + (f", {self.upload_seconds:g} s an upload" if self.upload_seconds else "")
        )
