"""A service that puts prompts on its spans -> sent to the collector like any other's."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Status, StatusCode

from inferwatch.trace_e2e.leaks import CARELESS, CARELESS_SERVICE


def send(otlp_url: str) -> str:
    """One span with a secret in each attribute, event and message that instrumentations use; its trace id."""
    provider = TracerProvider(resource=Resource.create({"service.name": CARELESS_SERVICE}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{otlp_url}/v1/traces")))
    try:
        with provider.get_tracer("careless").start_as_current_span("chat", attributes=CARELESS) as span:
            span.add_event("gen_ai.user.message", {"content": "zqxsecretevent"})
            span.set_status(Status(StatusCode.ERROR, "zqxsecretmessage"))
            return trace.format_trace_id(span.get_span_context().trace_id)
    finally:
        provider.shutdown()
