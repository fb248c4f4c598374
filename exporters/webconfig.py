"""The exporter toolkit's web configuration file to a TLS context, a basic-auth check and headers.

Read once at start. Keys that Python's TLS cannot honour are refused by name, never passed over.
"""

import asyncio
import base64
import hashlib
import hmac
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from pydantic import BaseModel, ConfigDict, Field, field_validator

from exporters.configfile import ConfigError, load

_VERIFIED_LIMIT = 256  # remembered good logins; bcrypt is slow by design
_TLS_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TLSServerConfig(_Strict):
    """`tls_server_config`: paths are relative to the file's folder."""

    cert_file: str
    key_file: str
    client_ca_file: str | None = None
    client_auth_type: Literal["NoClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert"] = (
        "NoClientCert"
    )
    min_version: Literal["TLS12", "TLS13"] = "TLS12"
    max_version: Literal["TLS12", "TLS13"] = "TLS13"


class HTTPServerConfig(_Strict):
    """`http_server_config`: `http2` is accepted for the format's sake; HTTP/1.1 is what is served."""

    http2: bool = True
    headers: dict[str, str] = Field(default_factory=dict)

    @field_validator("headers")
    @classmethod
    def _one_line(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or any(c in name + text for c in "\r\n\0"):
                raise ValueError(f"header {name!r} holds a line break or no name; write it on one line")
        return value


class WebConfig(_Strict):
    """The whole file."""

    tls_server_config: TLSServerConfig | None = None
    http_server_config: HTTPServerConfig = HTTPServerConfig()
    basic_auth_users: dict[str, str] = Field(default_factory=dict)

    @field_validator("basic_auth_users")
    @classmethod
    def _hashed(cls, value: dict[str, str]) -> dict[str, str]:
        for user, password in value.items():
            if not password.startswith(("$2a$", "$2b$", "$2y$")) or len(password) != 60:
                raise ValueError(
                    f"the password of {user!r} is not a bcrypt hash; make one with htpasswd -nBC 10 {user}"
                )
        return value


def load_web_config(path: Path) -> WebConfig:
    """Read and check the file, and everything it points at; raises ConfigError."""
    config = load(path, WebConfig)
    tls = config.tls_server_config
    if tls is not None:
        found = {
            key: str(path.parent / name)
            for key in ("cert_file", "key_file", "client_ca_file")
            if (name := getattr(tls, key)) is not None
        }
        tls = tls.model_copy(update=found)
        config = config.model_copy(update={"tls_server_config": tls})
    if tls and tls.client_auth_type != "NoClientCert" and tls.client_ca_file is None:
        raise ConfigError(
            f"{path}: tls_server_config.client_auth_type: {tls.client_auth_type!r} needs client_ca_file"
        )
    if tls and tls.min_version > tls.max_version:
        raise ConfigError(
            f"{path}: tls_server_config.min_version: {tls.min_version!r} is above max_version; swap them"
        )
    tls_context(config)
    if config.basic_auth_users:
        _bcrypt()
    return config


def tls_context(config: WebConfig) -> ssl.SSLContext | None:
    """The server's TLS context, or None where the file asks for none; raises ConfigError."""
    tls = config.tls_server_config
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _TLS_VERSIONS[tls.min_version]
    context.maximum_version = _TLS_VERSIONS[tls.max_version]
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file)
        if tls.client_ca_file is not None:
            context.load_verify_locations(tls.client_ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"tls_server_config: cert_file {tls.cert_file!r}, key_file {tls.key_file!r}, "
            f"client_ca_file {tls.client_ca_file!r}: {error}; give readable PEM files"
        ) from error
    if tls.client_auth_type == "VerifyClientCertIfGiven":
        context.verify_mode = ssl.CERT_OPTIONAL
    elif tls.client_auth_type == "RequireAndVerifyClientCert":
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def basic_auth(users: dict[str, str]) -> Middleware:
    """A middleware that answers 401 unless the request carries one of `users` (name to bcrypt hash)."""
    check = _bcrypt()
    verified: dict[bytes, None] = {}
    dummy = next(iter(users.values()))  # an unknown user costs as much time as a known one

    async def allowed(user: str, password: bytes) -> bool:
        stored = users.get(user, dummy)
        key = hashlib.sha256(b"\0".join((user.encode(), stored.encode(), password))).digest()
        if key in verified:
            return True
        matches = await asyncio.to_thread(check, password, stored.encode())
        if not (matches and user in users):
            return False
        if len(verified) >= _VERIFIED_LIMIT:
            verified.clear()
        verified[key] = None
        return True

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        login = _login(request.headers.get("Authorization", ""))
        if login is None or not await allowed(*login):
            return web.Response(
                status=401, text="Unauthorized\n", headers={"WWW-Authenticate": 'Basic realm="inferwatch"'}
            )
        return await handler(request)

    return middleware


def extra_headers(
    headers: dict[str, str],
) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    """A response hook that adds the file's headers to every answer."""

    async def add(_: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(headers)

    return add


def _login(header: str) -> tuple[str, bytes] | None:
    kind, _, payload = header.partition(" ")
    if kind.lower() != "basic":
        return None
    try:
        user, colon, password = base64.b64decode(payload.strip(), validate=True).partition(b":")
        return (user.decode(), password) if colon else None
    except ValueError:  # no base64, no UTF-8, or a header that is not even ASCII
        return None


def _bcrypt() -> Callable[[bytes, bytes], bool]:
    try:
        import bcrypt
    except ImportError as error:
        raise ConfigError(
            "basic_auth_users: bcrypt is not installed; install the extra: pip install 'inferwatch[web]'"
        ) from error

    def matches(password: bytes, stored: bytes) -> bool:
        if len(password) > 72 or b"\0" in password:  # beyond what bcrypt reads: never equal to a stored one
            return False
        # $2y$ is what htpasswd writes for the algorithm that the library calls $2b$.
        fixed = b"$2b$" + stored[4:] if stored.startswith(b"$2y$") else stored
        return hmac.compare_digest(bcrypt.hashpw(password, fixed), fixed)

    return matches
