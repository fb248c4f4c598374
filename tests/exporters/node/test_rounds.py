"""Cadences: a source that fails or hangs costs itself."""

import threading
import time

from exporters.node.gate import Gate
from exporters.node.rounds import Round, Rounds


def test_a_failing_source_is_told_and_tried_again() -> None:
    """Success, age and count say what happened; nothing is raised."""
    answers = iter([ValueError("broken"), None])

    def work(_: float) -> None:
        answer = next(answers)
        if answer is not None:
            raise answer

    one = Round("one", 1.0, work)
    one.once(10.0)
    assert (one.success, one.good_at, one.ticks) == (False, None, 1)
    one.once(11.0)
    assert (one.success, one.good_at, one.ticks) == (True, 11.0, 2)


def test_a_hanging_source_does_not_hold_up_another() -> None:
    """One never returns; the other goes on."""
    hang = threading.Event()
    stuck = Round("stuck", 0.01, lambda _: (hang.wait(30), None)[1])
    quick = Round("quick", 0.01, lambda _: None)
    rounds = Rounds((stuck, quick))
    rounds.start()
    deadline = time.monotonic() + 10
    while quick.ticks < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    hang.set()
    rounds.stop()

    assert quick.ticks >= 5
    assert stuck.ticks <= 1 or stuck.success


def test_nobody_reads_while_nvml_is_closed() -> None:
    """Exclusive waits for readers inside and keeps new ones out."""
    gate = Gate()
    inside: list[str] = []
    entered, leave = threading.Event(), threading.Event()

    def reader() -> None:
        with gate.shared():
            inside.append("reader")
            entered.set()
            leave.wait(10)
            inside.append("reader leaves")

    def closer() -> None:
        with gate.exclusive():
            inside.append("closer")

    threads = [threading.Thread(target=reader), threading.Thread(target=closer)]
    threads[0].start()
    entered.wait(10)
    threads[1].start()
    leave.set()
    for thread in threads:
        thread.join(10)
    with gate.shared():
        inside.append("reader again")

    assert inside == ["reader", "reader leaves", "closer", "reader again"]
