"""engine.yml to frozen settings: which targets may be read, and how each module reads them."""

import ipaddress
import re
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from exporters.configfile import load
from exporters.engine.registry import BY_NAME

DEFAULT_PATH = Path(__file__).with_name("engine.yml")
DEFAULT_MODULE = "default"
AUTO = "auto"
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_HOSTNAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*\Z")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Allow(_Strict):
    """Targets that may be read: one scheme, one host (a name, an address or a CIDR), some ports."""

    scheme: Literal["http", "https"]
    host: str
    ports: tuple[int | str, ...] = Field(min_length=1)

    @field_validator("host")
    @classmethod
    def _known_form(cls, value: str) -> str:
        host = value.lower().rstrip(".")
        if "/" in host or ":" in host or host.replace(".", "").isdigit():
            try:
                ipaddress.ip_network(host)
            except ValueError as error:
                raise ValueError(f"{error}; write an address, or a CIDR such as 10.1.0.0/16") from error
        elif not _HOSTNAME.match(host):
            raise ValueError("not a host name, an address or a CIDR; wildcards are not read, write a CIDR")
        return host

    @field_validator("ports")
    @classmethod
    def _in_range(cls, value: tuple[int | str, ...]) -> tuple[int | str, ...]:
        for port in value:
            first, last = _port_range(port)
            if not 1 <= first <= last <= 65535:
                raise ValueError(f"port {port!r} is not 1 to 65535; write 8000, or a range such as 8000-8099")
        return value

    @property
    def network(self) -> Network | None:
        """The addresses meant, or None where the entry names a host."""
        try:
            return ipaddress.ip_network(self.host)
        except ValueError:
            return None

    def has_port(self, port: int) -> bool:
        """Whether the entry covers `port`."""
        return any(first <= port <= last for first, last in map(_port_range, self.ports))


class Module(_Strict):
    """How an engine is read. `allow`, where given, takes the place of the file's own for this module."""

    timeout_s: float = Field(default=10.0, gt=0, le=300)
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=64 * 1024 * 1024)
    max_series: int = Field(default=10_000, ge=1, le=1_000_000)
    adapter: str = AUTO
    bearer_token_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    allow: tuple[Allow, ...] | None = None

    @field_validator("adapter")
    @classmethod
    def _known_adapter(cls, value: str) -> str:
        if value != AUTO and value not in BY_NAME:
            raise ValueError(f"no such adapter; write one of {', '.join((AUTO, *BY_NAME))}")
        return value

    @model_validator(mode="after")
    def _pair(self) -> "Module":
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together; give both or neither")
        return self


class Config(_Strict):
    """The whole file. `models` is the name to publish -> the names that engines use for that model."""

    allow: tuple[Allow, ...] = ()
    modules: dict[str, Module] = Field(default_factory=lambda: {DEFAULT_MODULE: Module()})
    models: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _whole(self) -> "Config":
        if DEFAULT_MODULE not in self.modules:
            raise ValueError(
                f"modules: no module {DEFAULT_MODULE!r}; add one, it is used when none is asked for"
            )
        owner: dict[str, str] = {}
        for model, aliases in self.models.items():
            for alias in aliases:
                if owner.setdefault(alias, model) != model:
                    raise ValueError(
                        f"models: {alias!r} stands under {owner[alias]!r} and {model!r}; keep one of them"
                    )
        return self

    def aliases(self) -> dict[str, str]:
        """Spelling of a model in an engine -> the name to publish."""
        return {alias: model for model, aliases in self.models.items() for alias in aliases}


def load_config(path: Path = DEFAULT_PATH) -> Config:
    """Read and check the file; relative paths in it start at its folder. Raises ConfigError."""
    config = load(path, Config)
    modules = {name: _absolute(module, path.parent) for name, module in config.modules.items()}
    return config.model_copy(update={"modules": modules})


def _absolute(module: Module, folder: Path) -> Module:
    keys = ("bearer_token_file", "ca_file", "cert_file", "key_file")
    return module.model_copy(update={key: folder / path for key in keys if (path := getattr(module, key))})


def _port_range(port: int | str) -> tuple[int, int]:
    if isinstance(port, int):
        return port, port
    found = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", port)
    if found is None:
        return 0, 0
    return int(found[1]), int(found[2] or found[1])
