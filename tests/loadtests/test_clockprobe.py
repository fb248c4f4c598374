"""What a master tells the workers that ask it."""

from types import SimpleNamespace
from typing import Any

from loadtests.clockprobe import answer_workers


def test_time_zero_is_decided_once_for_all_workers() -> None:
    """Two workers ask at different times: each is told the same beginning, on the master's clock."""
    told: list[tuple[str, dict[str, Any]]] = []
    heard: dict[str, Any] = {}
    moments = iter((100.0, 160.0))
    runner = SimpleNamespace(
        register_message=lambda name, handler: heard.update({name: handler}),
        send_message=lambda _, data, client_id: told.append((client_id, data)),
    )
    answer_workers(runner, lambda: next(moments))
    (asked,) = heard.values()
    for worker in ("a", "b"):
        asked(environment=SimpleNamespace(runner=runner), msg=SimpleNamespace(node_id=worker))

    assert [(worker, data["begin_s"]) for worker, data in told] == [("a", 100.0), ("b", 100.0)]
