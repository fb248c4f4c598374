"""A question -> passages, a prompt, an answer: each stage under its span, its pool, its fault and its metrics."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from time import perf_counter

from inferwatch import tracing
from inferwatch.drift_client import DriftClient
from inferwatch.tracing import attributes
from rag.cache import Found, TwoLevels, key_of
from rag.config import Config
from rag.context import Prompt, Spans, assemble
from rag.engine import Engine, Usage
from rag.faults import Faults
from rag.index import Hit
from rag.library import Library, Version
from rag.metrics import Metrics, length_class, query_class
from rag.minilm import Array
from rag.pool import Pool
from rag.vectors import BadVector, usable
from slo.names import rag as names

Emit = Callable[[str], Awaitable[None]]
RERANKER = "late-interaction"


class ClientGone(ConnectionError):
    """The caller hung up: neither the stage's failure nor the service's."""

    abandoned = True


@dataclass(frozen=True)
class Generated:
    """What the engine said at the end; the text went to the caller as it came."""

    finish_reason: str | None
    usage: Usage | None
    first_token_seconds: float | None


@dataclass(frozen=True)
class Parts:
    """What a pipeline works with."""

    config: Config
    library: Library
    pools: dict[str, Pool]
    faults: Faults
    cache: TwoLevels
    engine: Engine
    metrics: Metrics
    spans: Spans
    drift: dict[str, DriftClient]


class Pipeline:
    """The stages, in the order in which a request meets them."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def look_up(self, question: str, version: Version) -> Found:
        """What the caches hold for the question."""
        return self._p.cache.get(key_of(question, version.name, self._p.library.corpus))

    async def find(self, question: str, version: Version) -> tuple[Hit, ...]:
        """Embed, search and rerank; none when nothing is near enough. The caches keep either."""
        vector, tokens = await self._embed(question, version)
        hits = await self._search(question, vector, version)
        if hits:
            hits = await self._rerank(hits, tokens, version)
        self._p.cache.put(key_of(question, version.name, self._p.library.corpus), hits)
        return tuple(hits)

    async def prompt(self, question: str, hits: tuple[Hit, ...], version: Version) -> Prompt:
        """Assemble what was found into a prompt within its budget."""
        context, metrics = self._p.config.context, self._p.metrics
        passages = [self._p.library.passages[hit.number] for hit in hits]
        async with self._stage(names.STAGE_ASSEMBLE, tracing.assemble(version=version.name)) as handle:
            made = assemble(question, passages, context.max_tokens, context.truncate, self._p.spans)
            handle.context(made.tokens_before, made.tokens_after)
        metrics.contexts.inc()
        metrics.context_tokens.observe(made.tokens_before)
        metrics.kept_tokens.observe(made.tokens_after)
        if made.where is not None:
            metrics.truncated.labels(made.where).inc()
        return made

    async def generate(self, prompt: Prompt, version: Version, emit: Emit) -> Generated:
        """Ask the engine; *emit* gets each piece of text as it comes."""
        engine = self._p.config.engine
        work = tracing.generate(
            engine.model,
            provider=engine.provider,
            max_tokens=engine.max_tokens,
            stream=True,
            version=version.name,
        )
        finish, usage = None, None
        async with self._stage(names.STAGE_GENERATE, work) as handle, self._slot("engine", handle):
            began, clock = perf_counter(), handle.tokens()
            stream = self._p.engine.stream(prompt.messages, tracing.outgoing_headers(engine.model))
            # Closed before the slot is given on: an engine goes on generating for a connection that is still open.
            async with aclosing(stream):
                async for chunk in stream:
                    if chunk.text:
                        clock.tick()
                        await emit(chunk.text)
                    finish, usage = chunk.finish_reason or finish, chunk.usage or usage
            seconds = perf_counter() - began
            if usage is not None:
                handle.usage(usage.prompt, usage.output, usage.cached)
            handle.set(attributes.FINISH_REASONS, [finish] if finish else None)
            first = clock.first_seconds
        self._count(usage, seconds, first)
        return Generated(finish, usage, first)

    async def _embed(self, question: str, version: Version) -> tuple[Array, Array]:
        work = tracing.embedding(version.config.model, version.name, dimension=version.index.dimension)
        async with self._stage(names.STAGE_EMBEDDING, work) as handle:
            async with self._slot("embedding", handle):
                made = await version.embedder.encode([question])
            try:
                vector = usable(made.vectors[0], version.index.dimension)
            except BadVector as error:
                self._p.metrics.rejected.labels(error.reason).inc()
                raise
        if drift := self._p.drift.get(version.name):
            drift.embeddings(made.vectors)
        return vector, made.tokens[0]

    async def _search(self, question: str, vector: Array, version: Version) -> list[Hit]:
        wanted, kind = self._p.config.retrieval, query_class(question)
        work = tracing.retrieval(
            wanted.top_k, index="passages", hybrid=wanted.hybrid, query_class=kind, version=version.name
        )
        began = perf_counter()
        async with self._stage(names.STAGE_RETRIEVAL, work) as handle:
            async with self._slot("index", handle):
                search = version.index.search
                found = await asyncio.to_thread(search, vector, question, wanted.top_k, wanted.hybrid)
            near = [hit for hit in found if hit.score >= wanted.min_score]
            handle.set(attributes.DOCUMENTS, len(near))
        seconds = perf_counter() - began
        self._p.metrics.retrieval.labels(kind).observe(seconds)
        if drift := self._p.drift.get(version.name):
            drift.retrieval([hit.score for hit in near], seconds=seconds, query_characters=len(question))
        return near

    async def _rerank(self, hits: list[Hit], tokens: Array, version: Version) -> list[Hit]:
        keep = self._p.config.retrieval.keep
        work = tracing.rerank(RERANKER, top_k=keep, version=version.name)
        async with self._stage(names.STAGE_RERANK, work) as handle, self._slot("embedding", handle):
            return await asyncio.to_thread(version.index.rerank, tokens, hits, keep)

    @asynccontextmanager
    async def _stage(self, name: str, work: tracing.Work) -> AsyncIterator[tracing.Handle]:
        async with work as handle:
            try:
                await self._p.faults.meet(name)
                yield handle
            except ClientGone:
                raise
            except Exception:  # whatever it is, it is counted here and judged by who asked
                self._p.metrics.stage_errors.labels(name).inc()
                raise

    @asynccontextmanager
    async def _slot(self, pool: str, handle: tracing.Handle) -> AsyncIterator[None]:
        async with self._p.pools[pool].slot() as waited:
            handle.pool_wait(waited)
            yield

    def _count(self, usage: Usage | None, seconds: float, first: float | None) -> None:
        metrics = self._p.metrics
        if first is not None:
            metrics.first_token.observe(first)
        if usage is None:
            return
        length = length_class(usage.prompt)
        metrics.generation.labels(length).observe(seconds)
        if usage.cached is not None:
            metrics.prompt_tokens.labels(length).inc(usage.prompt)
            metrics.cached_tokens.labels(length).inc(usage.cached)
