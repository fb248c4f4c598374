"""A service's name -> an OpenTelemetry SDK that exports its spans over OTLP, set up by the standard environment."""

import os
from collections.abc import Callable, Mapping

from opentelemetry import trace

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


class TracingSetupError(RuntimeError):
    """Spans are wanted and the SDK is not installed."""


def install(
    service: str, *, attributes: Mapping[str, str] | None = None, environ: Mapping[str, str] = os.environ
) -> Callable[[], None]:
    """
    Export spans to the endpoint that the environment names (OTEL_EXPORTER_OTLP_ENDPOINT; sampler, batches and
    queue by their OTEL_ variables); without one nothing is set up and spans cost next to nothing.

    Returns what sends the rest and ends the exporter. Raises TracingSetupError when the SDK is missing.
    """
    if not any(environ.get(name) for name in ENDPOINT_VARIABLES):
        return lambda: None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise TracingSetupError(
            f"{error.name} is missing; install opentelemetry-sdk and opentelemetry-exporter-otlp-proto-http"
            " (extra: tracing)"
        ) from error
    provider = TracerProvider(resource=Resource.create({"service.name": service, **(attributes or {})}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider.shutdown
