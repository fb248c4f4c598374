"""A target and the exporters' common configuration -> how it may be reached: address, token, TLS."""

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from exporters.canary.targets import Target
from exporters.configfile import ConfigError
from exporters.engine.config import DEFAULT_MODULE, Config, Module
from exporters.engine.probe_error import ProbeError
from exporters.engine.targets import Resolve, TargetRefused, checked_address, parse_target, system_resolve


class NotAsked(Exception):
    """The target may not or cannot be asked; the text says why and what to change."""


@dataclass(frozen=True)
class Access:
    """How to reach one engine: base URL without final slash, headers (a token, say), TLS."""

    base_url: str
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | bool = True
    server_name: str | None = None


def tls_contexts(config: Config) -> dict[str, ssl.SSLContext]:
    """Return the TLS context of each module; raises ConfigError where its files cannot be used."""
    return {name: _context(name, module) for name, module in config.modules.items()}


def _context(name: str, module: Module) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=module.ca_file)
        if module.cert_file is not None:
            context.load_cert_chain(module.cert_file, module.key_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"modules.{name}: ca_file {module.ca_file}, cert_file {module.cert_file}, key_file {module.key_file}: "
            f"{error}; give readable PEM files"
        ) from error
    return context


def accessor(
    target: Target, config: Config, contexts: dict[str, ssl.SSLContext], resolve: Resolve = system_resolve
) -> Callable[[], Awaitable[Access]]:
    """Return what tells, anew before each request, how *target* is reached; it raises NotAsked.

    The address that was checked is the one connected to, whatever its name resolves to a moment later.
    """

    async def access() -> Access:
        name = target.module or DEFAULT_MODULE
        module = config.modules.get(name)
        if module is None:
            raise NotAsked(f"module {name!r} is not in the configuration; it has {', '.join(config.modules)}")
        try:
            parsed = parse_target(target.base_url)
            allow = config.allow if module.allow is None else module.allow
            address = await checked_address(parsed, allow, resolve)
        except (TargetRefused, ProbeError) as error:
            raise NotAsked(str(error)) from error
        shown = f"[{address}]" if address.version == 6 else str(address)
        return Access(
            f"{parsed.scheme}://{shown}:{parsed.port}",
            {"Host": parsed.authority} | _authorization(module.bearer_token_file),
            contexts[name],
            (module.server_name or parsed.host) if parsed.scheme == "https" else None,
        )

    return access


def _authorization(token_file: Path | None) -> dict[str, str]:
    if token_file is None:
        return {}
    try:
        token = token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NotAsked(f"bearer_token_file {token_file}: {error}; give a readable text file") from error
    if not token.isascii() or not token.isprintable() or not token or " " in token:
        raise NotAsked(
            f"bearer_token_file {token_file}: holds no single-line ASCII token; write just the token"
        )
    return {"Authorization": f"Bearer {token}"}
