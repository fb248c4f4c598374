"""The engine core: a loop of steps in real time that turns queued requests into tokens.

Everything a client waits for and everything the metrics say comes from the same step times.
"""

import asyncio
import random
import time

from sim.blocks import BlockPool
from sim.config import EngineConfig
from sim.metrics import EngineMetrics
from sim.request import FinishReason, Output, Request
from sim.scheduler import Scheduler, Step
from sim.text import TOKENS


class Engine:
    """One engine core. Create it inside a running event loop and keep `run()` as a task."""

    def __init__(self, config: EngineConfig, metrics: EngineMetrics) -> None:
        self.config = config
        self.metrics = metrics
        self._clock = asyncio.get_running_loop().time
        self.rng = random.Random(config.seed)
        self.pool = BlockPool(
            config.num_blocks,
            config.block_size,
            self._clock,
            metrics.evicted if config.kv_cache_metrics else None,
        )
        self.scheduler = Scheduler(config, self.pool)
        # Requests reach the scheduler between two steps, as over vLLM's input queue.
        self._inbox: list[Request] = []
        self._work = asyncio.Event()
        self._stepping = asyncio.Event()
        self._salt = 0
        self.reconfigure(config)

    @property
    def queued(self) -> list[Request]:
        """Requests that wait, in order."""
        return [*self.scheduler.waiting, *self._inbox]

    def full(self) -> str | None:
        """Name the queue limit that refuses another request now, or None."""
        requests, tokens = self.config.max_num_queued_reqs, self.config.max_num_queued_tokens
        if requests is None and tokens is None:
            return None
        queued = self.queued
        if requests is not None and len(queued) >= requests:
            return "max_num_queued_reqs"
        if tokens is not None and sum(r.prompt_length for r in queued) >= tokens:
            return "max_num_queued_tokens"
        return None

    def submit(self, request: Request) -> None:
        """Hand a request over; its outputs come in its group's outbox."""
        if not self.config.share_prefixes:
            self._salt += 1
            request.hash_seed = self._salt
        self._inbox.append(request)
        self._work.set()

    def abort(self, request: Request) -> None:
        """Drop a request whose client left: no output, no sample, its blocks free again."""
        if request.finish_reason is not None or request.aborted:
            return
        request.aborted = True
        if request in self._inbox:
            self._inbox.remove(request)
        else:
            self.scheduler.remove(request)
        self._work.set()

    def reconfigure(self, config: EngineConfig) -> None:
        """Take new numbers from the next step on; model, block count and size stay."""
        was_asleep = self.config.asleep
        self.config = self.scheduler.config = config
        self.pool.withhold_all_but(config.usable_blocks)
        if config.asleep != was_asleep:
            self._sleep() if config.asleep else self._wake()
        if config.stepping or config.stops_with_work:
            self._stepping.set()
        else:
            self._stepping.clear()
        self._work.set()

    async def run(self) -> None:
        """Step for ever; wait without any cost while there is nothing to do."""
        while True:
            await self._stepping.wait()
            self._work.clear()
            step = self._plan()
            if step is None or not step.tokens:
                if step is None or not step.preempted:
                    await self._work.wait()
                continue
            await asyncio.sleep(step.seconds(self.config))
            await self._stepping.wait()
            self._deliver(step)
            # The gauges show a request that runs: now they may freeze.
            if not self.config.stepping and self.scheduler.running:
                self._stepping.clear()

    def _plan(self) -> Step | None:
        if self.config.asleep:
            return None
        now = self._clock()
        for request in self._inbox:
            self.scheduler.add(request, now)
        self._inbox.clear()
        step = self.scheduler.plan(now)
        self.metrics.admitted(step)
        if not step.tokens:
            self._publish()
        return step

    def _deliver(self, step: Step) -> None:
        now = self._clock()
        made = prefill = 0
        for request in self.scheduler.commit(step):
            if request.first_token_at is None:
                self.metrics.prefilled(request)
                prefill += request.prompt_length - request.num_cached
            self._token(request, now)
            made += 1
        if made:
            self.metrics.generated(made, prefill)
        self._publish()

    def _token(self, request: Request, now: float) -> None:
        if request.first_token_at is None or request.last_token_at is None:
            request.first_token_at = now
            if request.arrived_at is not None:
                self.metrics.first_token(now - request.arrived_at)
        else:
            self.metrics.token_gap(now - request.last_token_at)
        request.last_token_at = now
        token = TOKENS[self.rng.randrange(len(TOKENS))]
        request.tokens.append(token)
        reason = request.end()
        if reason is not None:
            self._finish(request, reason, now)
        if request.group is not None:
            # A failed request gives no last token, only the failure.
            text = None if reason is FinishReason.ERROR else token
            request.group.outbox.put(Output(request.index, text, reason))

    def _finish(self, request: Request, reason: FinishReason, now: float) -> None:
        request.finish_reason = reason
        self.scheduler.remove(request)
        self.metrics.finished(request, reason, now)
        group = request.group
        if group is not None:
            group.unfinished -= 1
            group.longest_output_tokens = max(group.longest_output_tokens, request.num_generated)
            if group.unfinished == 0:
                self.metrics.group_finished(group.n, group.longest_output_tokens)

    def _publish(self) -> None:
        scheduler = self.scheduler
        self.metrics.published(len(scheduler.running), len(scheduler.waiting), self.pool.usage_ratio)

    def _sleep(self) -> None:
        began = time.perf_counter()
        now = self._clock()
        for request in [*self.scheduler.running, *self.queued]:
            self._finish(request, FinishReason.ABORT, now)
            request.aborted = True
            if request.group is not None:
                request.group.outbox.put(Output(request.index, None, FinishReason.ABORT))
        self._inbox.clear()
        self.pool.forget_all()
        self._publish()
        self.metrics.sleep_state("weights_offloaded")
        self.metrics.sleep_operation("sleep", time.perf_counter() - began)

    def _wake(self) -> None:
        began = time.perf_counter()
        self.metrics.sleep_state("awake")
        self.metrics.sleep_operation("wake", time.perf_counter() - began)
