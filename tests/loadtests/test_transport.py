"""Arrival stamps when the wall clock, on which the kernel's are, is stepped while a request is under way.

A step of the clock by some time is, for the reader, the same as an offset that is wrong by that time. Uses gevent
without any monkey-patching.
"""

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from loadtests import client as client_module
from loadtests import transport
from loadtests.client import Client
from loadtests.plan import open_loop, parse_plan
from loadtests.target import Target
from loadtests.transport import Connection, kernel_stamps_work, now_ns, wall_offset_ns
from loadtests.workload import Workload

STEP_NS = 5_000_000_000
KERNEL = kernel_stamps_work()  # where the platform has none, every read is stamped by ourselves


@pytest.fixture
def connected() -> Iterator[tuple[Connection, socket.socket]]:
    """A connection, and its peer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection.open(Target("127.0.0.1", listener.getsockname()[1]))
        peer, _ = listener.accept()
    with peer:
        for _ in range(200):  # the kernel begins to stamp a little after the first socket has asked for it
            connection.use_wall_offset(wall_offset_ns())
            peer.send(b"x")
            if connection.receive()[2] is KERNEL:
                break
            time.sleep(0.01)
        yield connection, peer
        connection.close()


def test_an_interruption_between_the_clocks_does_not_set_them_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Monotonic 0 and 4 ms around a wall clock of 100 s say little; 4 ms and 4.001 ms around 100.004 s do: 99.9999995 s."""
    monotonic = iter([0, 4_000_000, 4_000_000, 4_001_000])
    wall = iter([100_000_000_000, 100_004_000_000])
    monkeypatch.setattr(transport, "now_ns", lambda: next(monotonic))
    monkeypatch.setattr(transport.time, "time_ns", lambda: next(wall))

    assert wall_offset_ns() == 99_999_999_500


@pytest.mark.parametrize("step_ns", [STEP_NS, -STEP_NS])
def test_a_step_of_the_wall_clock_does_not_move_stamps(
    connected: tuple[Connection, socket.socket], step_ns: int
) -> None:
    """Read by read: right, stepped by five seconds, right again; stamps stay in order and between send and now."""
    connection, peer = connected
    begun = now_ns()
    connection.send(b"ask")
    found = []
    for step in (0, step_ns, 0):
        connection.use_wall_offset(wall_offset_ns() + step)
        peer.send(b"x")
        _, stamp, by_kernel = connection.receive()
        found.append((stamp, by_kernel))

    order = [begun, *(stamp for stamp, _ in found), now_ns()]
    assert [by_kernel for _, by_kernel in found] == [KERNEL, False, KERNEL]
    assert order == sorted(order)


def test_an_answer_is_never_stamped_before_its_request(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock steps back by 5 s just after the offset was read: 30 ms to the first token, 10 ms gaps, not -5 s."""
    monkeypatch.setattr(client_module, "wall_offset_ns", lambda: wall_offset_ns() + STEP_NS)
    plan = parse_plan({"base_url": server.url, "model": "ok", "arrival": open_loop(1, 1), "output_tokens": 4})
    client, work = Client(plan), Workload(plan)
    record = client.perform(work.next(), now_ns())
    client.close()

    assert (record.outcome, record.clock) == ("ok", "monotonic")
    assert record.ttft_s is not None and 0.029 <= record.ttft_s < 1
    assert all(0 <= gap < 1e9 for gap in record.chunk_gaps_ns)
