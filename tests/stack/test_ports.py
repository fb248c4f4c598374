"""Ports that are held -> whose they are, in a message that a person can read."""

import contextlib
import socket
from collections.abc import Callable
from dataclasses import replace

import pytest

from inferwatch.stack import ports
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service


def test_a_second_stacks_ports_are_not_all_named(web_service: Callable[..., Service]) -> None:
    """Eight held ports: five lines say by whom, one how many more."""
    with contextlib.ExitStack() as holders:
        wanted = []
        for number in range(8):
            holder = holders.enter_context(socket.socket())
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            url = f"http://127.0.0.1:{holder.getsockname()[1]}"
            wanted.append(replace(web_service(f"s{number}"), url=url))
        with pytest.raises(StackError) as raised:
            ports.require_free(wanted)
    lines = str(raised.value).splitlines()

    assert [line.split(" is held")[0].rpartition("(")[2] for line in lines[:5]] == [
        f"s{n})" for n in range(5)
    ]
    assert lines[5:] == [
        "3 more ports are held",
        "end that, or choose other ports: inferwatch up --base-port 21000",
    ]
