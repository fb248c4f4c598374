"""Faults of RAG services and of collectors: the service's own switch, its users, its way to the engine, its spans' way."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from inferwatch.scenarios.rag_shape import Users
from inferwatch.scenarios.rag_stage import LINK, SENDER, STEADY_SPANS, ask, instance_name, post
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.stage import Stage
from inferwatch.stack.settings import HOST

FLOOD = {"per_second": 150, "attributes": 60}
"""60 attributes with names of 250 characters and more: about 17 kB a span."""
FLOOD_MIB_PER_SECOND = 150 * 60 * 250 / 2**20
"""Of 250 characters a name alone, which is less than what is queued."""


@dataclass(frozen=True)
class RagFault:
    """A stage of one instance is slowed, failed or starved by its own switch."""

    stage: str
    fields: Mapping[str, float]
    instance: int = 0
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        post(stage, instance_name(row.name, self.instance), "/faults", {"stage": self.stage, **self.fields})

    def end(self, stage: Stage, row: Row) -> None:
        post(stage, instance_name(row.name, self.instance), "/faults", {}, "DELETE")


@dataclass(frozen=True)
class OtherUsers:
    """The row's users become others; and others again at the end, where *mended* names them."""

    after: Users
    mended: Users | None = None
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        ask(stage, row, self.after)

    def end(self, stage: Stage, row: Row) -> None:
        ask(stage, row, row.users if self.mended is None else self.mended)


@dataclass(frozen=True)
class BadLink:
    """The way to the engine becomes longer, or cuts connections that it has kept."""

    delay_seconds: float = 0.0
    cuts: bool = False
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        post(stage, LINK, "/link", {row.name: {"delay_seconds": self.delay_seconds, "cuts": self.cuts}})

    def end(self, stage: Stage, row: Row) -> None:
        post(stage, LINK, "/link", {row.name: {}})


@dataclass(frozen=True)
class Redeployed:
    """A process is started again with one variable changed; *port_of*: its value is the address of that service."""

    service: str
    variable: str
    value: str = ""
    port_of: str = ""
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        value = f"{HOST}:{stage.settings.port(self.port_of)}" if self.port_of else self.value
        self._start(stage, value)

    def end(self, stage: Stage, row: Row) -> None:
        self._start(stage, stage.first_env[self.service][self.variable])

    def _start(self, stage: Stage, value: str) -> None:
        old = stage.services[self.service]
        stage.first_env.setdefault(self.service, dict(old.env))
        stage.services[self.service] = replace(old, env={**old.env, self.variable: value})
        stage.signal(self.service, signal.SIGTERM)
        stage.revive(self.service)


@dataclass(frozen=True)
class DeadBackend:
    """The keeper of traces is killed while many large spans come to one collector."""

    collector_http: str
    flood: Mapping[str, float] = field(default_factory=lambda: dict(FLOOD))
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        stage.signal("jaeger", signal.SIGKILL)
        post(stage, SENDER, "/spans", {stage.settings.url(self.collector_http): self.flood})

    def end(self, stage: Stage, row: Row) -> None:
        post(stage, SENDER, "/spans", {stage.settings.url(self.collector_http): STEADY_SPANS})
        stage.revive("jaeger")
