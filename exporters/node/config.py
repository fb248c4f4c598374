"""The agent's settings: where it reads, and what only the operator can know (instances, tenants, CPUs)."""

import re
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

DEFAULT_INSTANCE = "http://127.0.0.1:{port}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineEntry(_Strict):
    """An engine that pids alone do not explain: in a container, behind a proxy, of an unknown kind.

    `match` is a regular expression on the server's command line. Without it the entry only states that
    `instance` uses `gpus` (UUIDs), for agents that cannot see the engine's pids.
    """

    instance: str = Field(min_length=1)
    match: str | None = None
    dp_rank: str = "0"
    model: str = ""
    gpus: tuple[str, ...] = ()
    cpus: str = ""  # the CPUs that the engine core should stay on, like 0-3; else its affinity mask

    @field_validator("match")
    @classmethod
    def _is_a_pattern(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                re.compile(value)
            except re.error as error:
                raise ValueError(f"not a regular expression: {error}; mend it") from error
        return value


class TenantEntry(_Strict):
    """cgroups to watch beside the engines' own: a path under the cgroup root, `*` allowed."""

    tenant: str = Field(min_length=1)
    cgroup: str = Field(min_length=1)


class NodeFile(_Strict):
    """The optional configuration file. `engine_instance` is the label `instance` of the engine's other
    series, with {port} for the port that its command line names.
    """

    engine_instance: str = DEFAULT_INSTANCE  # how Prometheus names engines of this node
    expected_gpus: int = Field(default=0, ge=0)
    engines: tuple[EngineEntry, ...] = ()
    tenants: tuple[TenantEntry, ...] = ()

    @field_validator("engine_instance")
    @classmethod
    def _holds_a_port(cls, value: str) -> str:
        if value.count("{port}") != 1 or re.search(r"[{}]", value.replace("{port}", "")):
            raise ValueError("write {port} once where the port goes, for example http://vllm:{port}")
        return value


@dataclass(frozen=True)
class NodeConfig:
    """Everything the agent needs to know at start."""

    node: str
    proc_root: Path = Path("/proc")
    sys_root: Path = Path("/sys")
    file: NodeFile = field(default_factory=NodeFile)
