"""A host and port -> the addresses to connect to; and how it is called when no connection comes of it."""

import socket
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gevent.lock
from gevent import monkey
from gevent import socket as gsocket

_getaddrinfo: Any = monkey.get_original("socket", "getaddrinfo")
_RESOLVED_NS = 1_000_000_000


class TransportError(Exception):
    """The connection failed; *kind* is one of: dns, connect_refused, connect_failed, connect_timeout, tls, reset."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Target:
    """Where connections go. `tls` is None for plain HTTP; `kernel_stamps` asks for them, the read says if it had one."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    connect_timeout_s: float = 5.0
    kernel_stamps: bool = True
    idle_limit_s: float = 4.0


class Addresses:
    """
    What the resolver says of a target's host: an address at once, a name once a second at most.

    gevent asks in threads, and these hardly run beside a busy loop: where hundreds of clients each ask for themselves,
    the last of them wait for seconds.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._lock = gevent.lock.BoundedSemaphore(1)
        self._known: Sequence[Any] = ()
        self._failure = ""
        self._until_ns = 0

    def found(self) -> Sequence[Any]:
        """As `socket.getaddrinfo` gives them; raises `TransportError` dns, for all who waited for the same answer."""
        came_ns = time.monotonic_ns()
        with self._lock:
            if came_ns >= self._until_ns:
                self._ask()
            if self._failure:
                raise TransportError("dns", self._failure)
            return self._known

    def _ask(self) -> None:
        """A failure holds for nobody who comes after it."""
        host, port, stream = self._target.host, self._target.port, socket.SOCK_STREAM
        try:
            self._known = _numeric(host, port) or gsocket.getaddrinfo(host, port, 0, stream)
            self._failure, holds_ns = "", _RESOLVED_NS
        except OSError as error:
            self._failure, holds_ns = f"{host}: {error}", 0
        self._until_ns = time.monotonic_ns() + holds_ns


def _numeric(host: str, port: int) -> Sequence[Any]:
    """An address needs no resolver; nothing for a name."""
    try:
        flags = socket.AI_NUMERICHOST
        known: Sequence[Any] = _getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, flags)
        return known
    except OSError:
        return ()
