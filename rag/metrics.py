"""What the service counts of itself, under the names of slo/names/rag.py, as a Prometheus registry."""

from bisect import bisect_right
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from inferwatch.tracing import broken_traceparents
from slo.names import rag as names


def _base(name: str) -> str:
    """prometheus_client adds `_total` itself."""
    return name.removesuffix("_total")


class _Broken(Collector):
    """The tracing library's own count."""

    def collect(self) -> Iterable[CounterMetricFamily]:
        family = CounterMetricFamily(
            _base(names.BROKEN_TRACEPARENTS),
            "Requests whose traceparent could not be used; each began a trace of its own.",
            labels=[names.LABEL_REASON],
        )
        for reason, count in broken_traceparents().items():
            family.add_metric([reason], count)
        yield family


class Metrics:
    """One service's registry; every bounded series exists from the start, so that the first error is seen."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Broken())
        self.requests = self._counter(names.REQUESTS, "Requests by outcome.", names.LABEL_OUTCOME)
        self.duration = self._seconds(
            names.REQUEST_DURATION, "From a request's first byte to its answer's last."
        )
        self.stage_errors = self._counter(names.STAGE_ERRORS, "Stages that failed.", names.LABEL_STAGE)
        self.pool_wait = self._seconds(names.POOL_WAIT, "Wait for a free slot.", names.LABEL_POOL)
        self.pool_connections = self._gauge(
            names.POOL_CONNECTIONS, "Slots in use and free.", names.LABEL_POOL, names.LABEL_STATE
        )
        self.pool_size = self._gauge(names.POOL_SIZE, "Slots there are.", names.LABEL_POOL)
        self.pool_resets = self._counter(
            names.POOL_RESETS, "Kept-alive connections that were found dead when used.", names.LABEL_POOL
        )
        self.cache = self._counter(
            names.CACHE_LOOKUPS, "Lookups by level and result.", names.LABEL_LEVEL, names.LABEL_RESULT
        )
        self.version = self._gauge(
            names.VERSION_INFO, "Embedding versions in use.", names.LABEL_VERSION, "dimension"
        )
        self.rejected = self._counter(names.VECTORS_REJECTED, "Query vectors of no use.", names.LABEL_REASON)
        self._of_context_and_engine()
        self._begin()

    def _of_context_and_engine(self) -> None:
        self.contexts = self._counter(names.CONTEXTS, "Contexts assembled.")
        self.truncated = self._counter(names.CONTEXTS_TRUNCATED, "Contexts that were cut.", names.LABEL_WHERE)
        self.context_tokens = self._tokens(names.CONTEXT_TOKENS, "Tokens of passages before truncation.")
        self.kept_tokens = self._tokens(names.CONTEXT_KEPT_TOKENS, "Tokens of passages after truncation.")
        self.retrieval = self._seconds(
            names.RETRIEVAL_SECONDS, "Search in the index.", names.LABEL_QUERY_CLASS
        )
        self.generation = self._seconds(
            names.GENERATION_CLIENT_SECONDS,
            "The engine's whole answer, client-seen.",
            names.LABEL_CONTEXT_CLASS,
        )
        self.first_token = self._seconds(
            names.GENERATION_FIRST_TOKEN, "The engine's first token, client-seen."
        )
        self.cached_tokens = self._counter(
            names.GENERATION_CACHED_TOKENS,
            "Prompt tokens that the engine had cached.",
            names.LABEL_LENGTH_CLASS,
        )
        self.prompt_tokens = self._counter(
            names.GENERATION_PROMPT_TOKENS,
            "Prompt tokens of answers that state their cached tokens.",
            names.LABEL_LENGTH_CLASS,
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(_base(name), text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _seconds(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(name, text, labels, registry=self.registry, buckets=names.BOUNDS_SECONDS)

    def _tokens(self, name: str, text: str) -> Histogram:
        return Histogram(name, text, registry=self.registry, buckets=names.BOUNDS_TOKENS)

    def _begin(self) -> None:
        for outcome in names.OUTCOMES:
            self.requests.labels(outcome)
        for stage in names.STAGES:
            self.stage_errors.labels(stage)
        for level in names.CACHE_LEVELS:
            for result in names.CACHE_RESULTS:
                self.cache.labels(level, result)
        for where in names.TRUNCATIONS:
            self.truncated.labels(where)
        for length in names.LENGTH_CLASSES:
            self.cached_tokens.labels(length)
            self.prompt_tokens.labels(length)


def length_class(tokens: int) -> str:
    """The class a prompt of so many tokens belongs to."""
    return names.LENGTH_CLASSES[bisect_right(names.LENGTH_BOUNDS_TOKENS, tokens) - 1]


QUERY_CLASSES = ("short", "medium", "long")
_QUERY_WORDS = (8, 32)  # from so many words on a question is medium, long


def query_class(question: str) -> str:
    """By the question's length: under 8 words short, under 32 medium, else long."""
    return QUERY_CLASSES[bisect_right(_QUERY_WORDS, len(question.split()))]
