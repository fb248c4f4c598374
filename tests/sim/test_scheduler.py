"""Continuous batching on small schedules worked out by hand."""

from sim.blocks import BlockPool
from sim.config import EngineConfig
from sim.request import FinishReason, Request
from sim.scheduler import Scheduler, Step


def scheduler(num_blocks: int = 100, **limits: int) -> Scheduler:
    """A scheduler over blocks of 4 tokens."""
    config = EngineConfig(
        num_blocks=num_blocks,
        block_size=4,
        decode_step_seconds=1.0,
        decode_sequence_seconds=0.125,
        prefill_tokens_per_second=4.0,
        **limits,
    )
    return Scheduler(config, BlockPool(num_blocks, 4, clock=lambda: 0.0))


def request(text: str, max_tokens: int = 10) -> Request:
    """A request whose prompt tokens are the letters of `text`."""
    return Request(list(text), max_tokens)


def run(sched: Scheduler, now: float = 0.0) -> Step:
    """Plan a step and commit it, giving each ready request a token and ending those at their limit."""
    step = sched.plan(now)
    for ready in sched.commit(step):
        ready.tokens.append("!")
        if ready.end() is not None:
            sched.remove(ready)
    return step


def test_prompts_are_chunked_to_the_budget_and_seats_limit_the_batch() -> None:
    """Budget 8, two seats: A 5 + B 3 of 6; then A 1 + B 3; A leaves, then B 1 + C 3."""
    sched = scheduler(max_num_seqs=2, max_num_batched_tokens=8)
    a, b, c = request("aaaaa", max_tokens=2), request("bbbbbb"), request("ccc")
    for one in (a, b, c):
        sched.add(one, 0.0)
    first = run(sched)
    assert (first.tokens, list(sched.waiting)) == ({a: 5, b: 3}, [c])
    second = run(sched)
    assert (second.tokens, sched.running) == ({a: 1, b: 3}, [b])
    third = run(sched)
    assert (third.tokens, list(sched.waiting)) == ({b: 1, c: 3}, [])
    assert (a.num_generated, b.num_generated, c.num_generated) == (2, 2, 1)


def test_step_time_has_a_fixed_a_decode_and_a_prefill_part() -> None:
    """Eight prefill tokens at 4/s: 1 + 2 s; then one decode and three prefill: 1 + 0.125 + 0.75 s."""
    sched = scheduler(max_num_batched_tokens=8)
    sched.add(request("aaaaa"), 0.0)
    sched.add(request("bbbbbb"), 0.0)
    assert run(sched).seconds(sched.config) == 3.0
    assert run(sched).seconds(sched.config) == 1.875


def test_long_prompts_are_capped_a_request() -> None:
    """With a cap of 2 a prompt of 5 takes three steps while another decodes beside it."""
    sched = scheduler(long_prefill_token_threshold=2)
    short, long = request("a"), request("bbbbb")
    sched.add(short, 0.0)
    sched.add(long, 0.0)
    counts = [run(sched).tokens[long] for _ in range(3)]
    assert counts == [2, 2, 1]
    assert (short.num_generated, long.num_generated) == (3, 1)


def test_full_cache_preempts_the_youngest_which_is_computed_again() -> None:
    """4 blocks: A and B hold 2 each; B needs a third, gives way, and returns on one cached block."""
    sched = scheduler(num_blocks=5)
    a, b = request("aaaaaaa", max_tokens=3), request("bbbbbbbb")
    sched.add(a, 0.0)
    sched.add(b, 0.0)
    assert run(sched).tokens == {a: 7, b: 8}
    assert sched.pool.usage_ratio == 1.0
    second = run(sched)
    assert (second.tokens, second.preempted, list(sched.waiting)) == ({a: 1}, [b], [b])
    assert (b.num_preemptions, b.num_computed, sched.pool.usage_ratio) == (1, 0, 0.5)
    third = run(sched)
    assert (third.tokens, third.preempted) == ({a: 1}, [])
    assert a.num_generated == 3
    fourth = run(sched)
    assert fourth.tokens == {b: 5}
    assert fourth.admitted == []
    assert b.num_generated == 2


def test_a_shared_prefix_is_not_computed_twice() -> None:
    """B shares 8 of A's 10 tokens: 2 computed, 8 cached, both counted at B's first admission."""
    sched = scheduler()
    a, b = request("abcdefghij"), request("abcdefghXY")
    sched.add(a, 0.0)
    run(sched)
    sched.add(b, 1.0)
    step = run(sched, now=2.5)
    assert step.tokens == {a: 1, b: 2}
    assert (step.admitted, b.num_cached, b.queued_at, b.scheduled_at) == ([b], 8, 1.0, 2.5)


def test_an_aborted_request_frees_its_blocks_and_gets_no_token() -> None:
    """A request removed in the middle of a step leaves the cache empty and nothing ready."""
    sched = scheduler(num_blocks=5)
    one = request("abcdefgh")
    sched.add(one, 0.0)
    step = sched.plan(0.0)
    assert sched.pool.usage_ratio == 0.5
    one.aborted = True
    sched.remove(one)
    assert sched.commit(step) == []
    assert sched.pool.usage_ratio == 0.0


def test_the_end_of_a_request_has_a_reason() -> None:
    """A failure comes before a stop, a stop before the length limit."""
    made_two = {"tokens": list("ab"), "max_tokens": 2}
    for extra, reason in (
        ({"fail_after_tokens": 2, "stop_after_tokens": 2}, FinishReason.ERROR),
        ({"stop_after_tokens": 2}, FinishReason.STOP),
        ({}, FinishReason.LENGTH),
    ):
        one = Request(made_two["tokens"], made_two["max_tokens"], **extra)
        one.tokens = [*one.tokens, "x", "y"]
        assert one.end() is reason
    assert Request(["a"], 2).end() is None
