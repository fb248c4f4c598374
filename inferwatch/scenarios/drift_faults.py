"""Faults of embeddings: a service sends other vectors, an exporter is deployed without its reference."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from inferwatch.scenarios.drift_shape import Sent
from inferwatch.scenarios.drift_stage import exporter_name, send, write_config
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.stage import Stage
from inferwatch.stack.errors import StackError


@dataclass(frozen=True)
class OtherEmbeddings:
    """The row's service sends something else; beside it a scenario of its simulated engine, where named."""

    after: Sent
    scenario: str = ""
    params: Mapping[str, float] = field(default_factory=dict)
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        send(stage, row, self.after)
        if self.scenario:
            stage.switch(row.name, self.scenario, self.params)

    def end(self, stage: Stage, row: Row) -> None:
        if row.sent is None:
            raise StackError(f"{row.name}: nothing says what it sends in good health; give the row `sent`")
        send(stage, row, row.sent)
        if self.scenario:
            stage.switch(row.name, "healthy", {})


@dataclass(frozen=True)
class WithoutReference:
    """The row's exporter is deployed again, and its profile was forgotten."""

    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        self._deploy(stage, row, has_reference=False)

    def end(self, stage: Stage, row: Row) -> None:
        self._deploy(stage, row, has_reference=True)

    def _deploy(self, stage: Stage, row: Row, *, has_reference: bool) -> None:
        write_config(row, stage.rows, stage.settings, has_reference=has_reference)
        stage.signal(exporter_name(row.name), signal.SIGTERM)
        stage.revive(exporter_name(row.name))
