"""The faults of the matrix, each with its mend: scenarios of the simulated engine, recorded things, the stack's own troubles."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from inferwatch.scenarios.node_stage import SLOW_STORE_MATCHER, agent_name
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.shown import Shown
from inferwatch.scenarios.stage import Stage
from inferwatch.stack import config
from inferwatch.stack.errors import StackError

BROKEN_RULES = """groups:
- name: broken
  rules:
  - record: broken
    expr: up * on () up
"""
"""Valid PromQL that fails at every evaluation: many-to-many matching."""
SLOW_RULES = f"""groups:
- name: slow
  rules:
  - record: slow
    expr: archived{{{",".join(f'{key}="{value}"' for key, value in SLOW_STORE_MATCHER.items())}}}
"""
"""Asks a remote store that takes longer to answer than the interval between evaluations; it costs no CPU."""


@dataclass(frozen=True)
class Nothing:
    """No fault, for a time."""

    mends_itself_seconds: float | None

    def begin(self, stage: Stage, row: Row) -> None:
        """Nothing happens."""

    def end(self, stage: Stage, row: Row) -> None:
        """Nothing is mended."""


@dataclass(frozen=True)
class Sim:
    """A scenario of the row's first engine."""

    scenario: str
    params: Mapping[str, float] = field(default_factory=dict)
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        stage.switch(row.name, self.scenario, self.params)

    def end(self, stage: Stage, row: Row) -> None:
        stage.switch(row.name, "healthy", {})


@dataclass(frozen=True)
class Recorded:
    """
    The recorded things of the row show something else; beside it a scenario of its simulated engine, where named.

    Attributes:
        restarts: the node agent is started again with it, as after a reboot.
    """

    after: Shown
    scenario: str = ""
    params: Mapping[str, float] = field(default_factory=dict)
    restarts: bool = False
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        self._show(stage, row, self.after)
        if self.scenario:
            stage.switch(row.name, self.scenario, self.params)

    def end(self, stage: Stage, row: Row) -> None:
        self._show(stage, row, row.shows)
        if self.scenario:
            stage.switch(row.name, "healthy", {})

    def _show(self, stage: Stage, row: Row, shown: Shown) -> None:
        if stage.recordings is None:
            raise StackError(f"{row.name}: the stage {stage.name} has nothing recorded; use the stage nodes")
        stage.recordings.show(row.name, shown)
        if self.restarts:
            stage.signal(agent_name(row.shows.node), signal.SIGTERM)
            stage.revive(agent_name(row.shows.node))


@dataclass(frozen=True)
class RemoveTarget:
    """The row's first engine leaves service discovery and goes on running."""

    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        stage.set_watched(row.name, False)

    def end(self, stage: Stage, row: Row) -> None:
        stage.set_watched(row.name, True)


@dataclass(frozen=True)
class Kill:
    """A process of the stack is killed, and started again at the end."""

    service: str
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        stage.signal(self.service, signal.SIGKILL)

    def end(self, stage: Stage, row: Row) -> None:
        stage.revive(self.service)


@dataclass(frozen=True)
class Restart:
    """A process of the stack is ended and started again at once."""

    service: str
    mends_itself_seconds: float | None = 0.0

    def begin(self, stage: Stage, row: Row) -> None:
        stage.signal(self.service, signal.SIGTERM)
        stage.revive(self.service)

    def end(self, stage: Stage, row: Row) -> None:
        """It runs again already."""


@dataclass(frozen=True)
class BrokenRule:
    """A rule that fails at every evaluation is deployed."""

    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        config.write_text(stage.rules_dir / "broken.yaml", BROKEN_RULES)
        stage.reload("prometheus")

    def end(self, stage: Stage, row: Row) -> None:
        (stage.rules_dir / "broken.yaml").unlink(missing_ok=True)
        stage.reload("prometheus")


@dataclass(frozen=True)
class SlowRule:
    """A rule is deployed that takes longer than its interval."""

    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        config.write_text(stage.rules_dir / "slow.yaml", SLOW_RULES)
        stage.reload("prometheus")

    def end(self, stage: Stage, row: Row) -> None:
        (stage.rules_dir / "slow.yaml").unlink(missing_ok=True)
        stage.reload("prometheus")


@dataclass(frozen=True)
class BrokenConfig:
    """A configuration that its reader refuses is deployed."""

    service: str
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        path = stage.services[self.service].config_files[0]
        path.replace(path.with_suffix(".good"))
        config.write_text(path, "no_such_key: true\n")
        stage.reload(self.service, refused=True)

    def end(self, stage: Stage, row: Row) -> None:
        path = stage.services[self.service].config_files[0]
        path.with_suffix(".good").replace(path)
        stage.reload(self.service)


@dataclass(frozen=True)
class SampleLimit:
    """A target is added that has more samples than its job lets through; all of them are lost."""

    job: str
    mends_itself_seconds: float | None = None

    def begin(self, stage: Stage, row: Row) -> None:
        stage.set_limited_job(self.job)

    def end(self, stage: Stage, row: Row) -> None:
        stage.set_limited_job(None)
