"""Rows with recorded things -> the files that node agents and the recorded process read; rewritten at a fault."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inferwatch.scenarios import card
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.shown import WHOLE_NODE, Shown, numbers, uuid
from inferwatch.stack import config


@dataclass
class Recordings:
    """
    What the recorded things of a stage show now.

    Attributes:
        port: where the recorded process answers, its engines apart.
        engines: row -> URLs of its engines, recorded or simulated.
    """

    folder: Path
    port: int
    rows: Sequence[Row]
    engines: Mapping[str, tuple[str, ...]]
    shown: dict[str, Shown] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.shown = {row.name: row.shows for row in self.rows}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node agents, each once."""
        return tuple(dict.fromkeys(row.shows.node for row in self.rows if _has_node(row.shows)))

    @property
    def world_file(self) -> Path:
        """What the recorded process reads."""
        return self.folder / "world.json"

    def host_folder(self, node: str) -> Path:
        """Holds `proc` and `sys` of a node; only the one of most rows has anything in them."""
        return self.folder / f"host-{node}"

    def nvml_file(self, node: str) -> Path:
        """The recording that a node's agent answers from."""
        return self.folder / f"nvml-{node}.json"

    def agent_file(self, node: str) -> Path:
        """The agent's own configuration."""
        return self.folder / f"agent-{node}.yaml"

    def show(self, row: str, shown: Shown) -> None:
        """Let a row's things show this from now on; what it does not name stays."""
        before = self.shown[row]
        self.shown[row] = Shown(
            shown.card or before.card,
            shown.core or before.core,
            shown.tenant or before.tenant,
            shown.page or before.page,
            before.node,
        )
        self.write()

    def write(self) -> None:
        """Write everything that may change."""
        for node in self.nodes:
            cards = {row: one.card for row, one in self.shown.items() if one.node == node and one.card}
            config.write_text(self.nvml_file(node), card.document(cards))
        rows = {row.name: self._told(row) for row in self.rows}
        config.write_json(
            self.world_file, {"port": self.port, "host": str(self.host_folder(WHOLE_NODE)), "rows": rows}
        )

    def prepare(self) -> None:
        """Write what stays as well: the agents' configuration and the roots that they read."""
        for node in self.nodes:
            for folder in ("proc", "sys"):
                (self.host_folder(node) / folder).mkdir(parents=True, exist_ok=True)
            config.write_yaml(self.agent_file(node), self._agent(node))
        self.write()

    def _told(self, row: Row) -> dict[str, Any]:
        told = numbers(self.shown[row.name])
        if row.shows.core:
            told["argv"] = _arguments(row.name)
        if row.shows.page:
            told["ports"] = [int(url.rpartition(":")[2]) for url in self.engines[row.name]]
            told["requests_per_second"] = row.live_rate
        return told

    def _agent(self, node: str) -> dict[str, Any]:
        own = [row for row in self.rows if row.shows.node == node]
        engines = [row for row in own if row.shows.core or (row.shows.card and row.name in self.engines)]
        return {
            "engines": [self._engine(row) for row in engines],
            "tenants": [{"tenant": row.name, "cgroup": f"/{row.name}"} for row in own if row.shows.tenant],
        }

    def _engine(self, row: Row) -> dict[str, Any]:
        """An engine is named as Prometheus names it, or by its row where nothing scrapes it."""
        entry: dict[str, Any] = {"instance": next(iter(self.engines.get(row.name, ())), row.name)}
        if row.shows.core:
            entry["match"] = f"--served-model-name {row.name}$"
        return entry | ({"gpus": [uuid(row.name)]} if row.shows.card else {})


def _has_node(shown: Shown) -> bool:
    return any(thing is not None for thing in (shown.card, shown.core, shown.tenant))


def _arguments(row: str) -> list[str]:
    return ["vllm", "serve", "--served-model-name", row]
