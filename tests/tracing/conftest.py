"""Spans that the test made, as an SDK finished them."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Spans:
    """Finished spans by name, in the order they ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def all(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.all() if span.name == name]
        return span

    def attributes(self, name: str) -> dict[str, object]:
        return dict(self.one(name).attributes or {})


@pytest.fixture
def spans() -> Iterator[Spans]:
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Spans(exporter)
    exporter.shutdown()
