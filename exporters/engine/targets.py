"""A target as asked for to an address that may be connected to: parse, allow, resolve, check again.

The address checked is the address connected to, so a name that changes its answer in between gains
nothing. Nobody chooses a path: an adapter's paths are the only ones asked for.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from exporters.engine.config import Allow
from exporters.engine.probe_error import ProbeError
from slo.names import engine as names

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], Awaitable[list[str]]]
_PATHS = ("", "/", "/metrics")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Cloud metadata services that are not link-local.
_METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "168.63.129.16")))


class TargetRefused(ValueError):
    """The target cannot or may not be read; the text says what to change."""


@dataclass(frozen=True)
class Target:
    """A parsed target. `host` is lower case and without brackets."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """HOST or HOST:PORT as it goes into the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def parse_target(text: str) -> Target:
    """`http://host:port` or bare `host:port` to a Target; raises TargetRefused."""
    if not text:
        raise TargetRefused("no target; ask for /probe?target=http://HOST:PORT")
    if re.search(r"[\x00-\x20\x7f\\]", text):
        raise TargetRefused(f"target {text!r}: holds a space, a control character or a backslash; remove it")
    try:
        url = urlsplit(text if "://" in text else f"http://{text}")
        port = url.port
    except ValueError as error:
        raise TargetRefused(f"target {text!r}: {error}; write http://HOST:PORT") from error
    if url.scheme not in _DEFAULT_PORTS:
        raise TargetRefused(f"target {text!r}: scheme {url.scheme!r}; write http:// or https://")
    _check_rest(text, url)
    host = (url.hostname or "").rstrip(".").lower()
    if not host or "%" in host or not host.isascii():
        raise TargetRefused(
            f"target {text!r}: host {host!r} is not a plain name or address; write it in ASCII"
        )
    if port == 0:
        raise TargetRefused(f"target {text!r}: port 0; write the port the engine listens on")
    return Target(url.scheme, host, port or _DEFAULT_PORTS[url.scheme])


def _check_rest(text: str, url: SplitResult) -> None:
    if "@" in url.netloc:
        raise TargetRefused("target holds user info; leave it out and give the module a bearer_token_file")
    if url.path not in _PATHS or url.query or url.fragment or text.endswith(("?", "#")):
        raise TargetRefused(
            f"target {text!r}: the path is the adapter's to choose; write scheme, host and port only"
        )


def refused_address(address: Address) -> str | None:
    """Why an address is refused whatever is allowed, or None. Looks through IPv4-in-IPv6 forms."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return refused_address(inner)
    for kind in ("link_local", "multicast", "unspecified"):
        if getattr(address, f"is_{kind}"):
            return kind.replace("_", "-")
    return "a cloud metadata service" if address in _METADATA else None


async def system_resolve(host: str, port: int) -> list[str]:
    """Addresses of a name, in the system's order; raises OSError (socket.gaierror)."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


async def checked_address(target: Target, allow: Iterable[Allow], resolve: Resolve) -> Address:
    """The address to connect to.

    Raises TargetRefused where no entry allows the target, ProbeError(dns) where its name has no address.
    """
    entries = [entry for entry in allow if entry.scheme == target.scheme and entry.has_port(target.port)]
    named = any(entry.host == target.host for entry in entries)
    networks = [network for entry in entries if (network := entry.network) is not None]
    if not named and not networks:
        raise TargetRefused(_not_allowed(target, "no entry has its scheme, host and port"))
    refused, why = "", ""
    for address in await _addresses(target, resolve):
        reason = refused_address(address)
        if reason is not None:
            refused = f"{address} is {reason}, which is never read"
        elif named or any(address in network for network in networks):
            return address
        else:
            why = f"no entry covers {address}"
    if why:
        raise TargetRefused(_not_allowed(target, why))
    raise TargetRefused(
        f"target {target.scheme}://{target.authority}: {refused}; name the engine's own address"
    )


async def _addresses(target: Target, resolve: Resolve) -> list[Address]:
    try:
        return [ipaddress.ip_address(target.host)]
    except ValueError:
        pass  # a name
    try:
        texts = await resolve(target.host, target.port)
    except (OSError, UnicodeError) as error:
        raise ProbeError(names.REASON_DNS, f"{target.host}: {error}") from error
    addresses: list[Address] = [ipaddress.ip_address(text) for text in texts]
    if not addresses:
        raise ProbeError(names.REASON_DNS, f"{target.host}: no address")
    return addresses


def _not_allowed(target: Target, why: str) -> str:
    return (
        f"target {target.scheme}://{target.authority}: {why}; add an entry to `allow` in the exporter's "
        f"configuration with scheme {target.scheme}, its host or network and port {target.port}"
    )
