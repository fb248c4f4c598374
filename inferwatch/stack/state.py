"""What `up` did <-> .inferwatch/state.json: which engine was chosen, which processes are ours."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from inferwatch.stack.errors import StackError


@dataclass(frozen=True)
class Selection:
    """
    What is watched.

    Attributes:
        engine: ``sim``, ``vllm-cpu``, or ``urls`` for engines that somebody else runs.
        urls: base URL of each engine.
        service: value of the ``service`` label of these targets, an id in slo.yaml.
        rag: whether the reference RAG service runs too, in front of an engine of ours.
    """

    engine: str
    urls: tuple[str, ...]
    service: str
    rag: bool = False


@dataclass(frozen=True)
class Record:
    """What is remembered of a started process; *pid* alone may be another's after a while."""

    name: str
    pid: int
    created: float
    url: str
    ready_path: str
    log: str
    command_digest: str
    config_digest: str


@dataclass(frozen=True)
class State:
    """One run folder's stack; empty before the first `up` and after `down`."""

    base_port: int | None = None
    selection: Selection | None = None
    records: Mapping[str, Record] = field(default_factory=dict)


def load(path: Path) -> State:
    """Read the state; an absent file is an empty state, a damaged one a StackError."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return State(
            base_port=int(raw["base_port"]),
            selection=_selection(raw["selection"]),
            records={entry["name"]: Record(**entry) for entry in raw["services"]},
        )
    except FileNotFoundError:
        return State()
    except (ValueError, KeyError, TypeError) as error:
        raise StackError(
            f"{path} is damaged ({error!r}); end the processes named in it by hand, then remove it"
        ) from error


def save(path: Path, state: State) -> None:
    """Replace the file at once, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "base_port": state.base_port,
        "selection": asdict(state.selection) if state.selection else None,
        "services": [asdict(record) for record in state.records.values()],
    }
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    draft.replace(path)


def _selection(raw: Any) -> Selection | None:
    if not raw:
        return None
    return Selection(raw["engine"], tuple(raw["urls"]), raw["service"], raw.get("rag", False))
