"""Loopback ports that we want -> nothing when they are free, or an error that names who holds them."""

import contextlib
import socket

import psutil

from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.settings import HOST

MOST_NAMED = 5
"""A second stack holds some twenty; its first few say whose it is."""


def require_free(services: list[Service]) -> None:
    """Raise StackError naming each port that another process listens on."""
    taken = []
    for service in services:
        for port in (int(service.url.rsplit(":", 1)[1]), *service.extra_ports):
            if not _is_free(port):
                taken.append(f"port {port} ({service.name}) is held by {_holder(port)}")
    if taken:
        few = taken[:MOST_NAMED]
        if more := len(taken) - len(few):
            few.append(f"{more} more ports are held")
        raise StackError(
            "\n".join([*few, "end that, or choose other ports: inferwatch up --base-port 21000"])
        )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True


def _holder(port: int) -> str:
    with contextlib.suppress(psutil.AccessDenied, psutil.NoSuchProcess):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr[1:] == (port,)
            if listens and connection.pid:
                process = psutil.Process(connection.pid)
                return f"process {process.pid} ({' '.join(process.cmdline())[:80] or process.name()})"
    return "a process that we may not look at"
