"""Each stage slowed, failed or starved by name; a fault that makes no sense is refused."""

import pytest

from rag.faults import FaultError, Faults, InjectedFault
from rag.metrics import Metrics
from rag.pool import Pool


@pytest.fixture
def faults():
    metrics = Metrics()
    return Faults({name: Pool(name, 4, 1, metrics) for name in ("embedding", "index", "engine")})


async def test_a_slow_stage_sleeps_and_no_other_does(faults, monkeypatch):
    """The delay is the one named."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr("rag.faults.asyncio.sleep", sleep)
    faults.set({"stage": "retrieval", "delay_seconds": 0.5})
    for stage in ("embedding", "retrieval", "rerank", "assemble", "generate"):
        await faults.meet(stage)
    assert slept == [0.5]


async def test_a_failing_stage_fails_until_it_is_cleared(faults):
    """Ratio 1 is every call."""
    faults.set({"stage": "rerank", "fail_ratio": 1})
    with pytest.raises(InjectedFault):
        await faults.meet("rerank")
    faults.clear()
    await faults.meet("rerank")
    assert faults.shown() == {}


def test_starving_a_stage_shrinks_its_pool_until_it_is_cleared(faults):
    """Retrieval draws from the index pool."""
    faults.set({"stage": "retrieval", "pool_size": 1})
    assert {name: pool.size for name, pool in faults._pools.items()} == {
        "embedding": 4,
        "index": 1,
        "engine": 4,
    }
    faults.clear()
    assert faults._pools["index"].size == 4


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ([], "stage: name one of embedding"),
        ({"stage": "warp"}, "stage: name one of"),
        ({"stage": "rerank", "dely": 1}, "dely: unknown"),
        ({"stage": "rerank", "delay_seconds": -1}, "delay_seconds: -1"),
        ({"stage": "rerank", "delay_seconds": True}, "delay_seconds: True"),
        ({"stage": "rerank", "fail_ratio": 2}, "fail_ratio: 2"),
        ({"stage": "assemble", "pool_size": 1}, "assemble uses no pool"),
        ({"stage": "generate", "pool_size": 0}, "pool_size: 0"),
    ],
)
def test_what_makes_no_sense_is_refused_and_changes_nothing(faults, body, says):
    """The error names the key, the value and what is allowed."""
    with pytest.raises(FaultError, match=says):
        faults.set(body)
    assert faults.shown() == {}
