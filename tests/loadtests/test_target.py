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


def test_a_name_is_asked_for_once_and_an_address_never() -> None:
    """Fifty clients of each at once: one question, about the name; all connect to where it is."""
    said = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert said.stdout.strip() == "['engine.test'] {('127.0.0.1', 80)}"
