"""The edge of a service: a request with its headers -> a SERVER span under the caller's, or a new trace; and outward.

What the caller sends is judged first: a broken traceparent begins a new trace and is counted.
"""

import re
import threading
from collections.abc import Mapping

from opentelemetry import metrics, trace
from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, NonRecordingSpan, SpanContext, SpanKind, Tracer, TraceState
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from inferwatch.tracing import attributes as names
from inferwatch.tracing.handle import Value
from inferwatch.tracing.span import Work
from inferwatch.tracing.traceparent import MOST_MEMBERS, REASONS, Headers, read

STATE_KEY = "inferwatch"
"""Our member of tracestate; its value is a model's name."""
_STATE_VALUE = re.compile(r"[!-+\--<>-~]{1,256}")  # what W3C allows, spaces left out
_W3C = TraceContextTextMapPropagator()
_METRIC = metrics.get_meter("inferwatch.tracing").create_counter(
    "inferwatch.tracing.broken_traceparents", "{request}", "Requests whose traceparent could not be used."
)
_counts = dict.fromkeys(REASONS, 0)
_lock = threading.Lock()


def broken_traceparents() -> dict[str, int]:
    """Requests of this process with an unusable traceparent, by reason; every reason is there, 0 too."""
    with _lock:
        return dict(_counts)


def request(
    name: str, headers: Headers | None = None, *, model: str | None = None, operation: str | None = None,
    attributes: Mapping[str, Value | None] | None = None, tracer: Tracer | None = None,
) -> Work:  # fmt: skip
    """
    The span of a whole request, from the moment it came until the last byte of its answer.

    *name*: method and route, never a path with ids in it. *headers*: the caller's, as a mapping or pairs.
    """
    found: dict[str, Value] = {names.KIND: "CHAIN"}
    if model is not None:
        found[names.REQUEST_MODEL] = model
    if operation is not None:
        found[names.OPERATION] = operation
    found.update({key: value for key, value in (attributes or {}).items() if value is not None})
    incoming = read(headers or {})
    if incoming.broken:
        _count(incoming.broken)
        found[names.BROKEN_TRACEPARENT] = incoming.broken
        return Work(name, SpanKind.SERVER, found, _new_trace, tracer)
    if incoming.caller is not None:
        caller = trace.set_span_in_context(NonRecordingSpan(incoming.caller))
        return Work(name, SpanKind.SERVER, found, lambda: caller, tracer)
    return Work(name, SpanKind.SERVER, found, tracer=tracer)


def outgoing_headers(model: str | None = None) -> dict[str, str]:
    """
    traceparent (and tracestate) that make the next service's spans children of the present one.

    *model*: the model asked for, put into tracestate for engines whose spans do not name it (vLLM hands tracestate
    on; the collector reads it). A name that cannot stand there is left out.
    """
    span = trace.get_current_span()
    context = span.get_span_context()
    if model and context.is_valid and _STATE_VALUE.fullmatch(model):
        # The one who adds goes first, and when there are too many the last one goes.
        others = [(key, one) for key, one in (context.trace_state or {}).items() if key != STATE_KEY]
        state = TraceState([(STATE_KEY, model), *others[: MOST_MEMBERS - 1]])
        named = SpanContext(context.trace_id, context.span_id, False, context.trace_flags, state)
        span = NonRecordingSpan(named)
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(span))
    return carrier


def _new_trace() -> Context:
    return trace.set_span_in_context(INVALID_SPAN)


def _count(reason: str) -> None:
    with _lock:
        _counts[reason] += 1
    _METRIC.add(1, {"reason": reason})
