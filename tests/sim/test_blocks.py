"""KV blocks: lending, prefix hits, eviction order; all numbers by hand."""

import pytest

from sim.blocks import BlockPool
from sim.request import Request


def request(text: str) -> Request:
    """A request whose tokens are the letters of `text`."""
    return Request(list(text), max_tokens=10)


def pool(num_blocks: int = 5) -> BlockPool:
    """Blocks of 4 tokens; one of `num_blocks` is never lent."""
    return BlockPool(num_blocks, 4, clock=lambda: 0.0)


def test_usage_counts_lendable_blocks() -> None:
    """10 tokens take 3 of the 4 lendable blocks: 0.75."""
    blocks = pool()
    assert blocks.admit(request("abcdefghij"), [], 10)
    assert blocks.usage_ratio == 0.75
    assert blocks.available == 1


def test_admit_takes_nothing_when_full() -> None:
    """17 tokens need 5 blocks where 4 are lendable: nothing is lent."""
    blocks = pool()
    assert not blocks.admit(request("abcdefghijklmnopq"), [], 17)
    assert blocks.usage_ratio == 0.0


def test_same_prefix_is_found_and_shared() -> None:
    """The first 8 of 10 tokens are two full blocks; a second holder takes one new block only."""
    blocks = pool()
    first, second = request("abcdefghij"), request("abcdefghXY")
    blocks.admit(first, [], 10)
    prefix = blocks.cached_prefix(second)
    assert prefix == first.blocks[:2]
    assert blocks.admit(second, prefix, 10)
    assert blocks.available == 0
    blocks.release(first)
    assert blocks.available == 1
    blocks.release(second)
    assert blocks.available == 4


def test_last_token_is_never_from_the_cache() -> None:
    """Of the same 8 tokens only 4 may be reused: a whole hit would leave nothing to compute."""
    blocks = pool()
    blocks.admit(request("abcdefgh"), [], 8)
    assert len(blocks.cached_prefix(request("abcdefgh"))) == 1


def test_a_different_seed_finds_nothing() -> None:
    """A salted request shares no block even for the same tokens."""
    blocks = pool()
    blocks.admit(request("abcdefghij"), [], 10)
    salted = request("abcdefghij")
    salted.hash_seed = 7
    assert blocks.cached_prefix(salted) == []


def test_released_blocks_stay_until_lent_again() -> None:
    """After release two cached blocks remain; taking 3 of 4 blocks evicts the later one first."""
    blocks = pool()
    first = request("abcdefgh")
    blocks.admit(first, [], 8)
    kept = first.blocks[0]
    blocks.release(first)
    assert len(blocks.cached_prefix(request("abcdefghi"))) == 2
    blocks.admit(request("0123456789"), [], 10)
    assert blocks.cached_prefix(request("abcdefghi")) == [kept]


def test_withheld_blocks_count_as_used() -> None:
    """Only 1 of 4 may be lent: usage 0.75 with no request."""
    blocks = pool()
    blocks.withhold_all_but(1)
    assert blocks.usage_ratio == 0.75
    assert not blocks.admit(request("abcde"), [], 5)
    blocks.withhold_all_but(None)
    assert blocks.usage_ratio == 0.0


def test_eviction_reports_residency() -> None:
    """Lent at 1 s, reused at 4 s, evicted at 9 s: lifetime 8, idle 5, one gap of 3."""
    now = [1.0]
    seen: list[tuple[float, float, list[float]]] = []
    blocks = BlockPool(2, 4, clock=lambda: now[0], on_evict=lambda *times: seen.append(times))
    first = request("abcd")
    blocks.admit(first, [], 4)
    blocks.release(first)
    now[0] = 4.0
    second = request("abcde")
    assert not blocks.admit(second, blocks.cached_prefix(second), 5)
    assert blocks.admit(second, blocks.cached_prefix(second), 4)
    blocks.release(second)
    now[0] = 9.0
    blocks.admit(request("wxyz"), [], 4)
    assert seen == [(8.0, 5.0, [3.0])]


@pytest.mark.parametrize("tokens, blocks_lent", [(1, 1), (4, 1), (5, 2), (16, 4)])
def test_blocks_round_up(tokens: int, blocks_lent: int) -> None:
    """A block is lent for each 4 tokens begun."""
    blocks = pool()
    one = request("x" * tokens)
    blocks.admit(one, [], tokens)
    assert len(one.blocks) == blocks_lent
