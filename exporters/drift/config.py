"""drift.yml -> what is listened to, what references are loaded, how much is held."""

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from exporters.configfile import ConfigError
from exporters.configfile import load as load_file
from exporters.drift.profile import Profile, ProfileError
from exporters.drift.profile import load as load_profile
from exporters.drift.streams import Limits

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Reference(_Strict):
    """A profile; *model* and *dimension*, where given, must be the profile's own. Paths: from the file's folder."""

    file: str
    model: str | None = None
    dimension: int | None = Field(default=None, gt=0)


class Ingest(_Strict):
    """The port that takes vectors, spans and retrievals. Beyond loopback it needs a token file."""

    listen: str = "127.0.0.1:9491"
    token_file: str | None = None
    max_body_bytes: int = Field(default=16 * 1024 * 1024, gt=0)


class Tap(_Strict):
    """The proxy in front of an embedding server. Answers over *max_copy_bytes* pass and are not sampled."""

    upstream: str
    listen: str = "127.0.0.1:9492"
    tenant_header: str = "X-Tenant"
    version_header: str = "X-Model-Version"
    version: str = ""
    max_copy_bytes: int = Field(default=8 * 1024 * 1024, gt=0)
    max_waiting: int = Field(default=64, gt=0)

    @field_validator("upstream")
    @classmethod
    def _is_a_base(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("is no base URL; write for example http://127.0.0.1:8000")
        return value.rstrip("/")


class LimitsConfig(_Strict):
    """See streams.Limits."""

    streams: int = Field(default=32, gt=0)
    tenants: int = Field(default=16, ge=0)
    vector_bytes: int = Field(default=512 * 1024 * 1024, gt=0)


class Config(_Strict):
    """The whole file; every key may be left out."""

    references: tuple[Reference, ...] = ()
    ingest: Ingest = Ingest()
    tap: Tap | None = None
    limits: LimitsConfig = LimitsConfig()

    def at(self, ingest: str | None, tap: str | None) -> "Config":
        """The same with other addresses; that of the tap matters only where there is one."""
        changed: dict[str, Ingest | Tap] = {}
        if ingest is not None:
            changed["ingest"] = self.ingest.model_copy(update={"listen": ingest})
        if tap is not None and self.tap is not None:
            changed["tap"] = self.tap.model_copy(update={"listen": tap})
        return self.model_copy(update=changed)

    def bounds(self) -> Limits:
        """The limits as streams take them."""
        return Limits(self.limits.streams, self.limits.tenants, self.limits.vector_bytes)


def load_config(path: Path) -> Config:
    """Read drift.yml; raises ConfigError."""
    return load_file(path, Config)


def references(config: Config, folder: Path) -> dict[str, Profile]:
    """File name -> profile, each held to the model and dimension that the file wants. Raises ConfigError."""
    found: dict[str, Profile] = {}
    for one in config.references:
        path = folder / one.file
        try:
            found[str(path)] = load_profile(path).require(str(path), one.model, one.dimension)
        except ProfileError as error:
            raise ConfigError(f"references: {error}") from error
    return found


def ingest_token(config: Ingest, folder: Path, host: str) -> str | None:
    """The token of the ingest port, None where it is open on loopback. Raises ConfigError."""
    if config.token_file is None:
        if host not in LOOPBACK:
            raise ConfigError(
                f"ingest.listen: {config.listen!r} is not loopback and ingest.token_file is not set; write a token "
                "into a file (openssl rand -hex 32) and name it there"
            )
        return None
    path = folder / config.token_file
    try:
        token = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"ingest.token_file: {path}: cannot be read ({error}); give a readable file"
        ) from error
    if len(token) < 16:
        raise ConfigError(f"ingest.token_file: {path}: holds under 16 characters; use openssl rand -hex 32")
    return token
