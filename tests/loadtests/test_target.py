"""Addresses of a target: what needs no resolver gets none, and a name is asked for once for everybody."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# gevent stays out of the tests' own process: its hub would outlive the test.
ASKED = """
import gevent
from gevent import socket as gsocket
from loadtests.target import Addresses, Target

asked = []
real = gsocket.getaddrinfo
def resolver(host, *rest):
    asked.append(host)
    gevent.sleep(0.01)
    return real("127.0.0.1", *rest)
gsocket.getaddrinfo = resolver

number, name = Addresses(Target("127.0.0.1", 80)), Addresses(Target("engine.test", 80))
jobs = [gevent.spawn(one.found) for one in (number, name) for _ in range(50)]
gevent.joinall(jobs, raise_error=True)
print(asked, {job.value[0][4] for job in jobs})
"""


def _said(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_a_name_is_asked_for_once_and_an_address_never() -> None:
    """Fifty clients of each at once: one question, about the name; all connect to where it is."""
    assert _said(ASKED) == "['engine.test'] {('127.0.0.1', 80)}"


FAILED = """
import gevent
from gevent import socket as gsocket
from loadtests.target import Target, TransportError
from loadtests.transport import Addresses, Connection

asked = []
def resolver(host, *rest):
    asked.append(host)
    gevent.sleep(0.1)
    raise gsocket.gaierror(-2, "no such name")
gsocket.getaddrinfo = resolver

target = Target("engine.test", 80, connect_timeout_s=1.0)
addresses = Addresses(target)
def attempt():
    try:
        Connection.open(target, addresses)
    except TransportError as error:
        return error.kind
jobs = [gevent.spawn(attempt) for _ in range(50)]
gevent.joinall(jobs, raise_error=True)
print(len(asked), {job.value for job in jobs}, attempt(), len(asked))
"""


def test_a_name_that_fails_fails_for_all_who_wait() -> None:
    """
    Fifty at once, an answer in 0.1 s, 1 s of patience: one question, and each is told dns. One after the other they
    would wait for 5 s and most be told that the connection took too long. Who comes later asks anew.
    """
    assert _said(FAILED) == "1 {'dns'} dns 2"


NO_IPV6 = """
import errno, socket
from loadtests import transport
from loadtests.target import Target

class Addresses(transport.Addresses):
    def found(self):
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0)), *super().found()]

real = transport._SocketType
def only_ipv4(family, *rest):
    if family == socket.AF_INET6:
        raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
    return real(family, *rest)
with socket.create_server(("127.0.0.1", 0)) as server:
    port = server.getsockname()[1]
    transport._SocketType = only_ipv4
    target = Target("127.0.0.1", port)
    connection = transport.Connection.open(target, Addresses(target))
    print(connection.is_quiet())
    connection.close()
"""


def test_a_machine_without_ipv6_goes_on_to_the_next_address() -> None:
    """A name's first address is one of IPv6, for which this machine gives no socket: the second one is taken."""
    assert _said(NO_IPV6) == "True"
