"""Questions -> traced requests to the RAG service, each with what its client saw."""

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter, time

import urllib3
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

SERVICE = "client"
ROUTE = "/v1/rag/answer"
FLUSH_MS = 500
TIMEOUT_SECONDS = 60.0
_W3C = TraceContextTextMapPropagator()


@dataclass(frozen=True)
class Asked:
    """One request; *seconds* from before it was sent until its last byte was read, *at* its begin in Unix seconds."""

    trace_id: str
    span_id: str
    at: float
    seconds: float
    status: int
    question: str
    answer: str


@dataclass
class Traffic:
    """Workers that ask *questions* in turn; every second one asks for a stream. Close with `end`."""

    url: str
    otlp_url: str
    questions: Sequence[str]
    workers: int
    provider: TracerProvider = field(init=False)

    def __post_init__(self) -> None:
        self.provider = TracerProvider(resource=Resource.create({"service.name": SERVICE}))
        exporter = OTLPSpanExporter(endpoint=f"{self.otlp_url}/v1/traces")
        self.provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=FLUSH_MS))
        self._tracer = self.provider.get_tracer("trace-e2e")
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def ask(self, count: int) -> list[Asked]:
        """Ask *count* times and return when all are answered."""
        with self.flowing(count) as asked:
            pass
        return asked

    @contextmanager
    def flowing(self, count: int | None = None) -> Iterator[list[Asked]]:
        """Ask until *count* is reached, or until the block ends where there is none; the list fills meanwhile."""
        asked: list[Asked] = []
        errors: list[Exception] = []
        stop = threading.Event()
        left = itertools.count() if count is None else iter(range(count))

        def work() -> None:
            try:
                with urllib3.PoolManager(maxsize=1, retries=False, timeout=TIMEOUT_SECONDS) as pool:
                    while not stop.is_set() and self._next(left) is not None:
                        asked.append(self._ask(pool))
            except Exception as error:  # noqa: BLE001 # a worker's failure is the run's, raised below
                errors.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(self.workers)]
        for thread in threads:
            thread.start()
        try:
            yield asked
        finally:
            if count is None:
                stop.set()
            for thread in threads:
                thread.join()
        if errors:
            raise errors[0]

    def end(self) -> None:
        """Send the spans that wait."""
        self.provider.shutdown()

    def _next(self, left: Iterator[int]) -> int | None:
        with self._lock:
            return next(left, None)

    def _ask(self, pool: urllib3.PoolManager) -> Asked:
        with self._lock:
            number = next(self._numbers)
        question = f"{self.questions[number % len(self.questions)]} {marker(number)}"
        body = {"question": question, "stream": number % 2 == 1}
        with self._tracer.start_as_current_span(f"POST {ROUTE}", kind=SpanKind.CLIENT) as span:
            headers: dict[str, str] = {}
            _W3C.inject(headers)
            at, began = time(), perf_counter()
            answer = pool.request("POST", self.url + ROUTE, json=body, headers=headers)
            seconds = perf_counter() - began
            if answer.status != 200:
                span.set_status(Status(StatusCode.ERROR))
        context = span.get_span_context()
        text = answer.data.decode()
        return Asked(
            trace.format_trace_id(context.trace_id),
            trace.format_span_id(context.span_id),
            at,
            seconds,
            answer.status,
            question,
            _text(text) if answer.status == 200 else "",
        )


def marker(number: int) -> str:
    """A word that stands in one question of the run and nowhere else."""
    return f"zqx{number:05d}kvw"


def _text(body: str) -> str:
    """The answer's text, of either form. ValueError when the stream holds an error or does not end."""
    if not body.startswith("data:"):
        return str(json.loads(body)["answer"])
    lines = [line[6:] for line in body.splitlines() if line.startswith("data: ")]
    if not lines or lines[-1] != "[DONE]":
        raise ValueError(f"a stream that does not end well: {lines[-1:]}")
    choices = [choice for line in lines[:-1] for choice in json.loads(line)["choices"]]
    return "".join(choice["delta"].get("content", "") for choice in choices)
