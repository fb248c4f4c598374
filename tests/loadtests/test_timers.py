"""A schedule's clock: it wakes on time, and who is behind does not keep the others from running."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# gevent stays out of the tests' own process: its hub would outlive the test.
BEHIND = """
import gevent
from loadtests.timers import PreciseTimer
from loadtests.transport import now_ns

ran = []
gevent.spawn(ran.append, "the other")
timer = PreciseTimer()
timer.sleep_until(now_ns() - 1_000_000)
ran.append("a millisecond behind")
timer.sleep_until(now_ns() - 1_000_000_000)
ran.append("a second behind")
begun = now_ns()
timer.sleep_until(begun + 3_000_000)
ran.append("early" if now_ns() < begun + 3_000_000 else "in time")
timer.close()
print(*ran, sep=", ")
"""


STARTED = """
import gevent
from loadtests.timers import start_now

ran = []
def request():
    ran.append("sent")
    gevent.sleep(0)
    ran.append("answered")
gevent.spawn(ran.append, "was ready before")
sender = gevent.Greenlet(request)
start_now(sender)
ran.append("the schedule goes on")
sender.join()
print(*ran, sep=", ")
"""


def test_what_is_due_is_sent_before_all_that_is_ready() -> None:
    """The new greenlet runs to its first wait at once, then what was ready before, then the caller."""
    said = subprocess.run(
        [sys.executable, "-c", STARTED], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert said.stdout.strip() == "sent, was ready before, the schedule goes on, answered"


def test_who_is_behind_lets_the_others_run() -> None:
    """A millisecond late goes on at once, a second late after the waiting greenlet; 3 ms ahead is waited for."""
    said = subprocess.run(
        [sys.executable, "-c", BEHIND], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert said.stdout.strip() == "a millisecond behind, the other, a second behind, in time"


KILLED = """
import gevent
from loadtests.timers import start_now

said = []
def schedule():
    gevent.get_hub().loop.run_callback(gevent.getcurrent().throw, gevent.GreenletExit)
    try:
        start_now(gevent.Greenlet(gevent.sleep, 0.01))
    except gevent.GreenletExit:
        gevent.sleep(0.05)
        said.append("tidied up")
gevent.spawn(schedule).join()
print(*said)
"""


def test_a_schedule_that_is_killed_while_it_sends_can_tidy_up() -> None:
    """The waking that was asked for does not come into what the killed greenlet waits for next."""
    said = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert said.stdout.strip() == "tidied up"
