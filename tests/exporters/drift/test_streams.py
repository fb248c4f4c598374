"""Streams: bounded keys and memory, a changed dimension, states, the evaluation loop."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from exporters.drift.fit import fit
from exporters.drift.profile import Profile
from exporters.drift.streams import Key, Limits, Streams
from exporters.drift.vectors import Batch
from slo.signals import Drift

Make = Callable[..., np.ndarray]


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at 0."""
    return Clock()


@pytest.fixture
def streams(drift: Drift, profile: Profile, clock: Clock) -> Streams:
    """Streams held against `profile`, at most 3 of them and 2 tenants."""
    return Streams(drift, {"p": profile}, Limits(streams=3, tenants=2), clock)


def test_a_healthy_and_a_shifted_stream(streams: Streams, make: Make) -> None:
    """Tenant a is as the reference, tenant b is shifted: each has its own state and scores."""
    streams.offer(Batch("embed-a", "1", "a", make(300, 4)), "post")
    streams.offer(Batch("embed-a", "1", "b", make(300, 5, shift=2.0)), "tap")
    for key in list(streams.streams):
        streams.evaluate(key)
    verdicts = {key.tenant: stream.verdict for key, stream in streams.streams.items()}

    assert verdicts["a"] is not None and verdicts["a"].state == "no"
    assert verdicts["b"] is not None and verdicts["b"].state == "yes"
    assert verdicts["b"].ratio is not None and verdicts["b"].ratio > 1


def test_streams_and_tenants_over_the_limit_are_counted(streams: Streams) -> None:
    """Two tenants keep their names, the third is `other`; a fourth stream is dropped and counted."""
    for tenant in ("a", "b", "c", "d"):
        streams.offer(Batch("m", "", tenant, [[1.0, 2.0]]), "post")
    streams.offer(Batch("n", "", "a", [[1.0, 2.0], [3.0, 4.0]]), "post")

    assert [key.tenant for key in streams.streams] == ["a", "b", "other"]
    assert streams.dropped == Counter({"streams": 2})


def test_vectors_over_the_memory_limit_are_not_kept(drift: Drift, clock: Clock) -> None:
    """Room for 10 vectors of 4 float32 numbers: the eleventh batch member is counted, not held."""
    streams = Streams(drift, {}, Limits(vector_bytes=160), clock)
    streams.offer(Batch("m", "", "", np.ones((10, 4))), "post")
    accepted, _ = streams.offer(Batch("m", "", "", np.ones((1, 4))), "post")

    assert (accepted, streams.held_bytes, streams.dropped["memory"]) == (0, 160, 1)


def test_a_quiet_stream_is_forgotten_after_its_window(streams: Streams, clock: Clock) -> None:
    """15 minutes after its last vector nothing of it is left, and its place is free."""
    streams.offer(Batch("m", "", "", [[1.0, 2.0]]), "post")
    clock.now = 901
    streams.expire()

    assert streams.streams == {}
    assert streams.held_bytes == 0


def test_the_dimension_of_a_running_stream_changes(
    case: Callable[[str, str], Any], drift: Drift, clock: Clock
) -> None:
    """A62 on a live stream: a stray vector is refused; from 16 in a row the stream is of the new dimension."""
    reference, current = case("A62", "reference"), case("A62", "current")
    profile = fit(np.random.default_rng(0).standard_normal((200, 8)), "embed-a", "", drift, rounds=20)
    streams = Streams(drift, {"p": profile}, Limits(), clock)
    key = Key("embed-a", "", "")
    assert streams.offer(Batch("embed-a", "", "", reference["vectors"]), "post")[0] == 20
    accepted, rejected = streams.offer(
        Batch("embed-a", "", "", case("A62", "mixed_batch")["vectors"]), "post"
    )
    assert (accepted, dict(rejected)) == (2, {"dimension": 1})
    assert streams.offer(Batch("embed-a", "", "", current["vectors"][:10]), "post") == (0, {"dimension": 10})
    assert streams.offer(Batch("embed-a", "", "", current["vectors"][10:]), "post")[0] == 10
    streams.evaluate(key)
    verdict = streams.streams[key].verdict

    assert verdict is not None
    assert (verdict.state, verdict.swap, verdict.ratio) == ("swapped", "dimension", None)


def test_refusals_of_batches_that_begin_no_stream_are_counted(streams: Streams) -> None:
    """All-zero vectors of an unknown model: no stream, and two refusals."""
    streams.offer(Batch("m", "", "", [[0.0, 0.0], [0.0, 0.0]]), "otlp")

    assert streams.streams == {}
    assert streams.unheard == Counter({("otlp", "zero"): 2})


async def test_the_loop_judges_beside_the_event_loop(streams: Streams, make: Make) -> None:
    """After one round the verdict is there."""
    streams.offer(Batch("embed-a", "1", "", make(300, 4)), "post")
    task = asyncio.create_task(streams.run())
    stream = streams.streams[Key("embed-a", "1", "")]
    async with asyncio.timeout(60):
        while stream.verdict is None:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert stream.verdict.state == "no"
