"""KV cache space: fixed-size blocks lent to requests, kept by content hash for later prompts.

A block nobody holds stays findable by its hash until it is lent again, least recently used
first. One block is never lent (vLLM's null block), so usage is 1 - free / (blocks - 1).
"""

from collections import OrderedDict
from collections.abc import Callable
from itertools import pairwise

from sim.request import Request


class BlockPool:
    """Lends `num_blocks` - 1 blocks of `block_size` tokens.

    Args:
        clock: monotonic seconds, for residency times.
        on_evict: called with (lifetime s, idle s, gaps between uses s) when a cached block's
            content is given up; None where residency is not measured.
    """

    def __init__(
        self,
        num_blocks: int,
        block_size: int,
        clock: Callable[[], float],
        on_evict: Callable[[float, float, list[float]], None] | None = None,
    ) -> None:
        self.block_size = block_size
        self.withheld = 0
        self._lendable = num_blocks - 1
        self._free: OrderedDict[int, None] = OrderedDict.fromkeys(range(1, num_blocks))
        self._holders = [0] * num_blocks
        self._hash_of: list[int | None] = [None] * num_blocks
        self._by_hash: dict[int, int] = {}
        self._clock = clock
        self._on_evict = on_evict
        self._born: dict[int, float] = {}
        self._uses: dict[int, list[float]] = {}

    @property
    def available(self) -> int:
        """Blocks that can be lent now."""
        return max(0, len(self._free) - self.withheld)

    @property
    def usage_ratio(self) -> float:
        """Share of the blocks that requests (or a scenario) hold, 0 to 1."""
        return 1.0 - self.available / self._lendable

    def withhold_all_but(self, usable_blocks: int | None) -> None:
        """Let only `usable_blocks` be lent at once; None lends all."""
        self.withheld = 0 if usable_blocks is None else max(0, self._lendable - usable_blocks)

    def cached_prefix(self, request: Request) -> list[int]:
        """Blocks that already hold the start of this request's tokens.

        The last token is never taken from the cache: a step must compute it to make the next.
        """
        self._extend_hashes(request)
        longest = (len(request.tokens) - 1) // self.block_size
        found: list[int] = []
        for block_hash in request.block_hashes[:longest]:
            block = self._by_hash.get(block_hash)
            if block is None:
                break
            found.append(block)
        return found

    def admit(self, request: Request, prefix: list[int], upto_tokens: int) -> bool:
        """Lend `prefix` and new blocks up to `upto_tokens` tokens; False (and nothing) if full."""
        new = self._blocks_for(upto_tokens) - len(prefix)
        if new + sum(block in self._free for block in prefix) > self.available:
            return False
        for block in prefix:
            self._free.pop(block, None)
            self._holders[block] += 1
            if self._on_evict is not None:
                self._uses[block].append(self._clock())
        request.blocks = list(prefix)
        request.num_published_blocks = len(prefix)
        return self.grow(request, upto_tokens)

    def grow(self, request: Request, upto_tokens: int) -> bool:
        """Lend blocks until `upto_tokens` tokens fit, and publish the full ones by hash."""
        new = self._blocks_for(upto_tokens) - len(request.blocks)
        if new > self.available:
            return False
        for _ in range(new):
            request.blocks.append(self._lend())
        full = min(upto_tokens, len(request.tokens)) // self.block_size
        if full > request.num_published_blocks:
            self._extend_hashes(request)
            for position in range(request.num_published_blocks, full):
                self._publish(request.blocks[position], request.block_hashes[position])
            request.num_published_blocks = full
        return True

    def release(self, request: Request) -> None:
        """Take back all blocks of a request, its last block to be lent again first."""
        for block in reversed(request.blocks):
            self._holders[block] -= 1
            if self._holders[block] == 0:
                self._free[block] = None
        request.blocks = []
        request.num_published_blocks = 0

    def forget_all(self) -> None:
        """Drop every cached prefix (sleep discards the cache)."""
        self._by_hash.clear()
        self._hash_of = [None] * len(self._hash_of)

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.block_size)

    def _lend(self) -> int:
        block, _ = self._free.popitem(last=False)
        self._evict(block)
        self._holders[block] = 1
        if self._on_evict is not None:
            now = self._clock()
            self._born[block] = now
            self._uses[block] = [now]
        return block

    def _evict(self, block: int) -> None:
        block_hash = self._hash_of[block]
        if block_hash is None:
            return
        del self._by_hash[block_hash]
        self._hash_of[block] = None
        if self._on_evict is not None:
            now, uses = self._clock(), self._uses[block]
            gaps = [later - earlier for earlier, later in pairwise(uses)]
            self._on_evict(now - self._born[block], now - uses[-1], gaps)

    def _publish(self, block: int, block_hash: int) -> None:
        if self._hash_of[block] is None and block_hash not in self._by_hash:
            self._hash_of[block] = block_hash
            self._by_hash[block_hash] = block

    def _extend_hashes(self, request: Request) -> None:
        hashes, size = request.block_hashes, self.block_size
        while (len(hashes) + 1) * size <= len(request.tokens):
            start = len(hashes) * size
            parent = hashes[-1] if hashes else request.hash_seed
            hashes.append(hash((parent, tuple(request.tokens[start : start + size]))))
