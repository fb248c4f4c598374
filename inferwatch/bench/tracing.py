"""What a span of `inferwatch.tracing` costs, sampled and not, beside the same spans on the bare SDK in one run.

One request with five stages, each with the attributes of its kind; the exporter drops what it gets. Both sides take
turns in rounds, and the median round counts.
"""

import statistics
from collections.abc import Callable
from time import perf_counter_ns

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler
from opentelemetry.trace import SpanKind, Tracer

from inferwatch.tracing import attributes as names
from inferwatch.tracing.edge import request
from inferwatch.tracing.kinds import kind_of
from inferwatch.tracing.stages import stage

ROUNDS = 15
REQUESTS_A_ROUND = 300
STAGES = ("embedding", "retrieval", "rerank", "assemble", "generate")
SPANS_A_REQUEST = 1 + len(STAGES)
TICKS = 200_000
LIMIT_US = 50.0
PARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


class _Drop(SpanExporter):
    def export(self, spans: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS


def run() -> dict[str, object]:
    """Microseconds a span: ours and the bare SDK's, unsampled and sampled; and of a stream's chunk."""
    result: dict[str, object] = {"spans_a_round": REQUESTS_A_ROUND * SPANS_A_REQUEST, "rounds": ROUNDS}
    for name, sampler in (("unsampled", ALWAYS_OFF), ("sampled", ALWAYS_ON)):
        result.update(_compare(name, sampler))
    result["token_tick_us"] = round(_tick_us(), 3)
    result["limit_unsampled_us"] = LIMIT_US
    result["within_limit"] = float(str(result["unsampled_ours_us"])) < LIMIT_US
    return result


def _compare(name: str, sampler: Sampler) -> dict[str, object]:
    provider = TracerProvider(sampler=sampler, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(_Drop()))
    tracer = provider.get_tracer("bench")
    sides = {"ours": lambda: _ours(tracer), "bare_sdk": lambda: _bare(tracer)}
    times: dict[str, list[float]] = {side: [] for side in sides}
    try:
        for one in sides.values():
            _round_us(one)
        for _ in range(ROUNDS):
            for side, one in sides.items():
                times[side].append(_round_us(one))
    finally:
        provider.shutdown()
    medians = {side: statistics.median(some) for side, some in times.items()}
    added = statistics.median(o - b for o, b in zip(times["ours"], times["bare_sdk"], strict=True))
    return {
        **{f"{name}_{side}_us": round(value, 2) for side, value in medians.items()},
        f"{name}_added_us": round(added, 2),
        f"{name}_worst_round_ours_us": round(max(times["ours"]), 2),
    }


def _round_us(one: Callable[[], None]) -> float:
    began = perf_counter_ns()
    for _ in range(REQUESTS_A_ROUND):
        one()
    return (perf_counter_ns() - began) / 1000 / (REQUESTS_A_ROUND * SPANS_A_REQUEST)


def _ours(tracer: Tracer) -> None:
    with request("POST /v1/rag/answer", PARENT, model="tiny", operation="chat", tracer=tracer):
        for name in STAGES:
            with stage(name, of="tiny", attributes={names.REQUEST_MODEL: "tiny"}, tracer=tracer) as handle:
                handle.cache("miss")
                handle.usage(100, 20)


def _bare(tracer: Tracer) -> None:
    """The same spans and attributes with nothing around them; the caller's traceparent is not read."""
    root = {names.KIND: "CHAIN", names.REQUEST_MODEL: "tiny", names.OPERATION: "chat"}
    with tracer.start_as_current_span("POST /v1/rag/answer", kind=SpanKind.SERVER, attributes=root):
        for name in STAGES:
            kind = kind_of(name)
            found = {names.STAGE: name, names.KIND: kind.openinference, names.REQUEST_MODEL: "tiny"}
            with tracer.start_as_current_span(f"rag {name}", kind=kind.kind, attributes=found) as span:
                span.set_attribute(names.CACHE_LEVEL, "miss")
                span.set_attribute(names.INPUT_TOKENS, 100)
                span.set_attribute(names.OUTPUT_TOKENS, 20)


def _tick_us() -> float:
    from inferwatch.tracing.timing import TokenClock

    tick = TokenClock().tick
    began = perf_counter_ns()
    for _ in range(TICKS):
        tick()
    return (perf_counter_ns() - began) / 1000 / TICKS
