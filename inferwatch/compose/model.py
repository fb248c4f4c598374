"""docker-compose.yml and .env -> frozen services, enough of them to be checked without a container engine."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from inferwatch.stack.errors import StackError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MEMORY = re.compile(r"(\d+)([kmg]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}


@dataclass(frozen=True)
class Port:
    """A published port; *host_ip* is empty where every address of the host would listen."""

    host_ip: str
    published: int
    target: int


@dataclass(frozen=True)
class Mount:
    """A bind mount (*source* is a path) or a named volume."""

    kind: str
    source: str
    target: str
    read_only: bool


@dataclass(frozen=True)
class Service:
    """One service; *raw* is its whole mapping after merges and variables."""

    name: str
    raw: Mapping[str, Any]
    mounts: tuple[Mount, ...]
    ports: tuple[Port, ...]

    @property
    def repository(self) -> str:
        """The image without its tag."""
        return str(self.raw.get("image", "")).rpartition(":")[0] or str(self.raw.get("image", ""))

    @property
    def words(self) -> tuple[str, ...]:
        """The command as words."""
        command = self.raw.get("command") or []
        return tuple(shlex.split(command) if isinstance(command, str) else map(str, command))

    @property
    def user(self) -> str:
        """uid, or uid:gid; empty where the image decides."""
        return str(self.raw.get("user", ""))

    @property
    def profiles(self) -> frozenset[str]:
        """Profiles that start it; empty: always."""
        return frozenset(self.raw.get("profiles") or ())

    @property
    def hosts(self) -> frozenset[str]:
        """Names under which others reach it."""
        networks = self.raw.get("networks") or {}
        inner = [n for n in networks.values() if n] if isinstance(networks, dict) else []
        return frozenset({self.name, *(alias for n in inner for alias in n.get("aliases") or ())})

    @property
    def health(self) -> tuple[str, ...]:
        """The health check's words without CMD; empty where there is none."""
        test = (self.raw.get("healthcheck") or {}).get("test") or []
        return tuple(map(str, test[1:])) if isinstance(test, list) else ("sh", "-c", str(test))

    @property
    def depends_on(self) -> dict[str, Mapping[str, Any]]:
        """Service -> condition and required."""
        found = self.raw.get("depends_on") or {}
        return (
            dict(found) if isinstance(found, dict) else {n: {"condition": "service_started"} for n in found}
        )

    @property
    def memory_bytes(self) -> int | None:
        """The memory limit, None where there is none."""
        text = str(self.raw.get("mem_limit", ""))
        match = _MEMORY.fullmatch(text)
        return int(match[1]) * _UNITS[match[2].lower()] if match else None


@dataclass(frozen=True)
class Project:
    """A whole compose file; *folder* is what relative paths start from."""

    folder: Path
    services: tuple[Service, ...]
    volumes: frozenset[str]

    def __iter__(self) -> Iterator[Service]:
        return iter(self.services)

    def service(self, name: str) -> Service | None:
        """The service of that name."""
        return next((s for s in self.services if s.name == name), None)


def load(file: Path, environment: Mapping[str, str] | None = None) -> Project:
    """
    Read a compose file with the variables of .env beside it, or of *environment*.

    Raises StackError for YAML that cannot be read and for a variable without a value.
    """
    folder = file.resolve().parent
    values = read_env(folder / ".env") if environment is None else environment
    try:
        raw = yaml.safe_load(file.read_text(encoding="utf-8"))
        services = raw["services"]
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise StackError(f"{file}: not a compose file: {error!r}") from error
    filled = {name: _filled(service, values, f"{file}: {name}") for name, service in services.items()}
    return Project(
        folder,
        tuple(_service(name, service, folder) for name, service in filled.items()),
        frozenset(raw.get("volumes") or ()),
    )


def read_env(path: Path) -> dict[str, str]:
    """NAME=value lines; an absent file has none."""
    if not path.is_file():
        return {}
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, equals, value in pairs if equals}


def _filled(value: Any, values: Mapping[str, str], place: str) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, values, f"{place}.{key}") for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values, place) for inner in value]
    if not isinstance(value, str):
        return value

    def known(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise StackError(f"{place}: ${{{match[1]}}} has no value; add {match[1]} to .env")
        return values[match[1]]

    return _VARIABLE.sub(known, value)


def _service(name: str, raw: Mapping[str, Any], folder: Path) -> Service:
    return Service(
        name,
        raw,
        tuple(_mount(entry, folder) for entry in raw.get("volumes") or ()),
        tuple(_port(entry) for entry in raw.get("ports") or ()),
    )


def _mount(entry: Any, folder: Path) -> Mount:
    if isinstance(entry, dict):
        return Mount(entry["type"], entry.get("source", ""), entry["target"], bool(entry.get("read_only")))
    source, target, *mode = entry.split(":")
    is_bind = source.startswith((".", "/", "~"))
    return Mount(
        "bind" if is_bind else "volume",
        str((folder / source).resolve()) if is_bind else source,
        target,
        "ro" in ",".join(mode).split(","),
    )


def _port(entry: Any) -> Port:
    if isinstance(entry, dict):
        return Port(entry.get("host_ip", ""), int(entry["published"]), int(entry["target"]))
    *before, target = str(entry).split(":")
    return Port(
        before[0] if len(before) == 2 else "", int(before[-1]) if before else 0, int(target.split("/")[0])
    )
