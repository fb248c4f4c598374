"""A host and port -> connections that send bytes and return each read with the time it arrived.

Own sockets on gevent's loop, because what is timed here must not wait in a client library's buffer: every read
returns what one receive call had, stamped by the kernel (SO_TIMESTAMPNS) where the platform can, else at once
after the call. Needs gevent, never its monkey-patching.
"""

import errno
import os
import socket as _socket_names
import ssl
import struct
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import gevent
from gevent import monkey

from loadtests.readable import Readable
from loadtests.target import Addresses, Target, TransportError

_SocketType: Any = monkey.get_original("socket", "socket")
_WRITE = 2
_READ_BYTES = 16 * 1024
_SO_TIMESTAMPNS = getattr(
    _socket_names, "SO_TIMESTAMPNS", 35
)  # 35 on every Linux port Python wheels exist for
_TIMESPEC = struct.Struct("@ll")
_CONTROL_BYTES = _socket_names.CMSG_SPACE(_TIMESPEC.size)
_STAMP_TRIES, _STAMP_TRY_SECONDS = 50, 0.01
_CLOCK_TRIES, _CLOCK_SPREAD_NS = 3, 10_000
_AGAIN = (errno.EAGAIN, errno.EWOULDBLOCK)
_RESET = (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED)

now_ns = time.monotonic_ns


def wall_offset_ns() -> int:
    """Unix time minus monotonic time, read now; changes as NTP steers the wall clock."""
    for _ in range(_CLOCK_TRIES):
        before, wall, after = now_ns(), time.time_ns(), now_ns()
        if after - before < _CLOCK_SPREAD_NS:
            break  # else this process was interrupted between the two clocks, and the middle says little
    return wall - (before + after) // 2


class Connection:
    """One connected socket; use `Connection.open`. Not for two greenlets at once."""

    __slots__ = (
        "_last_ns",
        "_offset_ns",
        "_readable",
        "_sock",
        "_tls",
        "_tls_arrived",
        "_tls_in",
        "_tls_out",
        "idle_since_ns",
        "uses",
    )

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._readable = Readable(sock.fileno())
        self._offset_ns = 0
        self._last_ns = 0
        self._tls: ssl.SSLObject | None = None
        self._tls_arrived = (0, False)
        self.idle_since_ns = 0
        self.uses = 0

    @classmethod
    def open(cls, target: Target, addresses: "Addresses | None" = None) -> "Connection":
        """Resolve, connect and, for TLS, shake hands, all within the connect timeout; raises `TransportError`."""
        late = TransportError("connect_timeout", f"not connected within {target.connect_timeout_s:g} s")
        with gevent.Timeout(target.connect_timeout_s, late):
            connection = _connect_any(target, (addresses or Addresses(target)).found())
            if target.tls is not None:
                try:
                    connection._start_tls(target.tls, target.host)
                except BaseException:
                    connection.close()
                    raise
        return connection

    def send(self, data: bytes) -> None:
        """Hand all of *data* to the kernel; raises `TransportError` reset."""
        self._last_ns = now_ns()
        if self._tls is not None:
            self._tls.write(data)
            data = self._tls_out.read()
        view = memoryview(data)
        while view:
            try:
                view = view[self._sock.send(view) :]
            except OSError as error:
                if error.errno not in _AGAIN:
                    raise _reset(error) from error
                _wait(self._sock.fileno(), _WRITE)

    def use_wall_offset(self, offset_ns: int) -> None:
        """Unix minus monotonic time with which kernel stamps (Unix time) are turned into monotonic ones."""
        self._offset_ns = offset_ns

    def receive(self) -> tuple[bytes, int, bool]:
        """(bytes, monotonic arrival in ns, was it the kernel's stamp); b"" when the peer closed. Waits if need be.

        Stamps never go back, nor before the last `send`: a kernel's stamp that would is not used.
        """
        if self._tls is None:
            return self._receive_raw()
        while True:
            try:
                return self._tls.read(_READ_BYTES), *self._tls_arrived
            except ssl.SSLWantReadError:
                data, stamp, by_kernel = self._receive_raw()
                self._tls_arrived = (stamp, by_kernel)  # several TLS records may come in one read
                if not data:
                    return b"", *self._tls_arrived
                self._tls_in.write(data)
            except ssl.SSLZeroReturnError:
                return b"", *self._tls_arrived
            except ssl.SSLError as error:
                raise TransportError("tls", str(error)) from error

    def is_quiet(self) -> bool:
        """False when the peer closed, or sent something unasked, while the connection was idle."""
        try:
            self._sock.recv(1, _socket_names.MSG_PEEK)
        except OSError as error:
            return error.errno in _AGAIN
        return False

    def close(self) -> None:
        """Close at once; closing twice is fine."""
        self._readable.close()
        self._sock.close()

    def _receive_raw(self) -> tuple[bytes, int, bool]:
        while True:
            self._readable.wait()
            try:
                data, control, _, _ = self._sock.recvmsg(_READ_BYTES, _CONTROL_BYTES)
            except OSError as error:
                if error.errno in _AGAIN:
                    continue
                raise _reset(error) from error
            stamp, by_kernel = now_ns(), False
            for _, kind, payload in control:
                if kind == _SO_TIMESTAMPNS:
                    seconds, nanoseconds = _TIMESPEC.unpack(payload)
                    arrived = seconds * 1_000_000_000 + nanoseconds - self._offset_ns
                    if self._last_ns <= arrived <= stamp:  # else the wall clock was stepped: trust our own
                        stamp, by_kernel = arrived, True
            self._last_ns = stamp
            return data, stamp, by_kernel

    def _start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """TLS over memory buffers, so that encrypted reads keep their kernel stamps."""
        self._tls_in, self._tls_out = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(self._tls_in, self._tls_out, server_hostname=host)
        while True:
            try:
                tls.do_handshake()
                wants_more = False
            except ssl.SSLWantReadError:
                wants_more = True
            except ssl.SSLError as error:
                raise TransportError("tls", str(error)) from error
            self.send(self._tls_out.read())
            if not wants_more:
                break
            data, stamp, by_kernel = self._receive_raw()
            self._tls_arrived = (stamp, by_kernel)
            if not data:
                raise TransportError("tls", "the peer closed during the handshake")
            self._tls_in.write(data)
        self._tls = tls


class ConnectionPool:
    """Idle connections of one target, newest first; a checked one, or a new one, for whoever asks."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._addresses = Addresses(target)
        self._idle: deque[Connection] = deque()

    def take(self) -> Connection:
        """A live idle connection (`uses` > 0) or a fresh one (`uses` == 0); raises `TransportError`."""
        oldest = now_ns() - int(self.target.idle_limit_s * 1e9)
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since_ns >= oldest and connection.is_quiet():
                return connection
            connection.close()
        return Connection.open(self.target, self._addresses)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose response ended cleanly for the next request."""
        connection.uses += 1
        connection.idle_since_ns = now_ns()
        self._idle.append(connection)

    def close(self) -> None:
        """Close what is idle."""
        while self._idle:
            self._idle.pop().close()


def kernel_stamps_work() -> bool:
    """
    True when this platform stamps received TCP segments; tried on a loopback connection.

    Linux turns stamping on behind the first socket that asks for it, so that the first segments may lack theirs.
    """
    if sys.platform != "linux":
        return False
    with _SocketType() as listener, _SocketType() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        client.setsockopt(_socket_names.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        client.connect(listener.getsockname())
        peer, _ = listener.accept()
        with peer:
            for _ in range(_STAMP_TRIES):
                peer.send(b"x")
                _, control, _, _ = client.recvmsg(1, _CONTROL_BYTES)
                if any(kind == _SO_TIMESTAMPNS for _, kind, _ in control):
                    return True
                time.sleep(_STAMP_TRY_SECONDS)
    return False


def _wait(fileno: int, events: int) -> None:
    watcher = gevent.get_hub().loop.io(fileno, events)
    try:
        gevent.get_hub().wait(watcher)
    finally:
        watcher.close()


def _reset(error: OSError) -> TransportError:
    kind = "reset" if error.errno in _RESET else "connection_failed"
    return TransportError(kind, os.strerror(error.errno) if error.errno else str(error))


def _connect_any(target: Target, found: Sequence[Any]) -> Connection:
    """Try each address the name has, in the resolver's order; the last failure speaks for all."""
    failure = TransportError("dns", f"{target.host}: the name has no address")
    for family, kind, protocol, _, address in found:
        try:
            sock = _SocketType(family, kind, protocol)
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:
                raise  # too many open files, say: our own fault
            failure = TransportError("connect_failed", f"{address[0]}:{address[1]}: {error}")
            continue
        try:
            _connect_one(sock, address, target.kernel_stamps)
            return Connection(sock)
        except OSError as error:
            sock.close()
            name = "connect_refused" if error.errno == errno.ECONNREFUSED else "connect_failed"
            failure = TransportError(name, f"{address[0]}:{address[1]}: {error}")
        except BaseException:
            sock.close()
            raise
    raise failure


def _connect_one(sock: Any, address: Any, kernel_stamps: bool) -> None:
    sock.setblocking(False)
    sock.setsockopt(_socket_names.IPPROTO_TCP, _socket_names.TCP_NODELAY, 1)
    if kernel_stamps and sys.platform == "linux":
        sock.setsockopt(_socket_names.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    code = sock.connect_ex(address)
    if code == errno.EINPROGRESS:
        _wait(sock.fileno(), _WRITE)
        code = sock.getsockopt(_socket_names.SOL_SOCKET, _socket_names.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
