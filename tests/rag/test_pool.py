"""Slots: first come, first served; who waits too long is turned away; what is in use is seen."""

import asyncio
import contextlib

import pytest

from rag.metrics import Metrics
from rag.pool import Pool, PoolStarved

from .conftest import sample


def _state(metrics):
    return {
        state: sample(metrics, "rag_pool_connections", pool="engine", state=state)
        for state in ("active", "idle")
    }


async def test_use_and_size_are_seen():
    """Two of three in use, then none."""
    metrics = Metrics()
    pool = Pool("engine", 3, 1, metrics)
    async with pool.slot(), pool.slot():
        assert _state(metrics) == {"active": 2, "idle": 1}
    assert _state(metrics) == {"active": 0, "idle": 3}
    assert sample(metrics, "rag_pool_size", pool="engine") == 3
    assert sample(metrics, "rag_pool_wait_seconds_count", pool="engine") == 2


async def test_who_came_first_is_served_first():
    """Three wait for one slot."""
    pool, order = Pool("engine", 1, 5, Metrics()), []

    async def use(name):
        async with pool.slot():
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(*(use(name) for name in "abc"))
    assert order == ["a", "b", "c"]


async def test_a_starved_caller_is_turned_away_by_name_and_its_wait_counts():
    """20 ms of patience; the next one is served all the same."""
    metrics = Metrics()
    pool = Pool("engine", 1, 0.02, metrics)
    async with pool.slot():
        with pytest.raises(PoolStarved, match=r"'engine': no slot of 1 in 0.02 s"):
            async with pool.slot():
                pass
    async with pool.slot():
        pass
    assert sample(metrics, "rag_pool_wait_seconds_sum", pool="engine") >= 0.02


async def test_a_caller_that_leaves_takes_no_slot_with_it():
    """Cancelled while it waits: the slot goes to the next."""
    metrics = Metrics()
    pool = Pool("engine", 1, 5, metrics)
    async with pool.slot():
        waiting = asyncio.create_task(pool.slot().__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
    async with pool.slot():
        assert _state(metrics) == {"active": 1, "idle": 0}


async def test_shrinking_takes_nothing_from_who_has_it_and_growing_serves_who_waits():
    """Two in use, size 1: a third waits until the size is 3."""
    metrics = Metrics()
    pool = Pool("engine", 2, 5, metrics)
    async with pool.slot(), pool.slot():
        pool.resize(1)
        assert _state(metrics) == {"active": 2, "idle": 0}
        third = asyncio.create_task(pool.slot().__aenter__())
        await asyncio.sleep(0)
        assert not third.done()
        pool.resize(3)
        assert await third >= 0
    with pytest.raises(ValueError, match="1 is the least"):
        pool.resize(0)
