"""Continuous batching: which request gets how many tokens in the next step.

Running requests go first; when the KV space is full the youngest is preempted and will be
computed again. Then waiting requests are admitted in order of arrival, their prompts cut into
chunks that fit the step's token budget.
"""

from collections import deque
from dataclasses import dataclass, field

from sim.blocks import BlockPool
from sim.config import EngineConfig
from sim.request import Request


@dataclass(slots=True)
class Step:
    """One planned step: tokens per request, and what was decided on the way."""

    tokens: dict[Request, int] = field(default_factory=dict)
    preempted: list[Request] = field(default_factory=list)
    # Admitted for the first time in this step, whose prefix lookups count.
    admitted: list[Request] = field(default_factory=list)
    prefill_tokens: int = 0
    decoding: int = 0

    def seconds(self, config: EngineConfig) -> float:
        """How long the step takes: a fixed part, a part per decoding sequence, and prefill."""
        decode = config.decode_step_seconds + config.decode_sequence_seconds * self.decoding
        return decode + self.prefill_tokens / config.prefill_tokens_per_second


class Scheduler:
    """The waiting queue, the running batch and the KV space they share."""

    def __init__(self, config: EngineConfig, pool: BlockPool) -> None:
        self.config = config
        self.pool = pool
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []

    def add(self, request: Request, now: float) -> None:
        """Queue a request at monotonic time `now`."""
        request.queued_at = now
        self.waiting.append(request)

    def plan(self, now: float) -> Step:
        """Decide the next step at monotonic time `now`; blocks are lent for it at once."""
        step = Step()
        budget = self._plan_running(step)
        if not step.preempted:
            self._plan_waiting(step, budget, now)
        for request, count in step.tokens.items():
            if count == 1 and request.num_generated:
                step.decoding += 1
            else:
                step.prefill_tokens += count
        return step

    def commit(self, step: Step) -> list[Request]:
        """Account the tokens of a finished step; return the requests whose next token it made."""
        ready: list[Request] = []
        for request, count in step.tokens.items():
            if request.aborted:
                continue
            request.num_computed += count
            if request.num_computed == len(request.tokens):
                ready.append(request)
        return ready

    def remove(self, request: Request) -> None:
        """Forget a request wherever it is and free its blocks."""
        if request in self.running:
            self.running.remove(request)
        elif request in self.waiting:
            self.waiting.remove(request)
        self.pool.release(request)

    def _chunk(self, request: Request, computed: int, budget: int) -> int:
        missing = len(request.tokens) - computed
        cap = self.config.long_prefill_token_threshold
        return min(missing, budget, cap) if cap else min(missing, budget)

    def _plan_running(self, step: Step) -> int:
        budget, position = self.config.max_num_batched_tokens, 0
        while position < len(self.running) and budget:
            request = self.running[position]
            count = self._chunk(request, request.num_computed, budget)
            while not self.pool.grow(request, request.num_computed + count):
                victim = self.running[-1]
                self._preempt(victim, step)
                if victim is request:
                    return budget
            step.tokens[request] = count
            budget -= count
            position += 1
        return budget

    def _preempt(self, request: Request, step: Step) -> None:
        self.running.remove(request)
        self.pool.release(request)
        request.num_computed = 0
        request.num_preemptions += 1
        self.waiting.appendleft(request)
        step.preempted.append(request)

    def _plan_waiting(self, step: Step, budget: int, now: float) -> None:
        while self.waiting and budget and len(self.running) < self.config.max_num_seqs:
            request = self.waiting[0]
            prefix = self.pool.cached_prefix(request)
            cached = len(prefix) * self.pool.block_size
            count = self._chunk(request, cached, budget)
            if not self.pool.admit(request, prefix, cached + count):
                return
            self.waiting.popleft()
            self.running.append(request)
            request.num_computed = cached
            if request.scheduled_at is None:
                request.scheduled_at = now
                request.num_cached = cached
                step.admitted.append(request)
            step.tokens[request] = count
            budget -= count
