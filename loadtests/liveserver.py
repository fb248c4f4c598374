"""A run under way -> its live series on a loopback port, for as long as the block lasts."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server

from loadtests.live import LiveRun
from loadtests.plan import LoadPlan

HOST = "127.0.0.1"


@contextlib.contextmanager
def live_series(plan: LoadPlan, folder: Path, began_s: float, port: int) -> Iterator[int]:
    """Serve /metrics of the run in *folder* on 127.0.0.1:*port* (0 picks one); yields the port."""
    registry = CollectorRegistry()
    registry.register(LiveRun(plan, folder, began_s))
    server, thread = start_http_server(port, HOST, registry)
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
