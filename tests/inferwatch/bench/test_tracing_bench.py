"""The tracing benchmark compares like with like; its figures are for people."""

import collections

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from inferwatch.bench import tracing


def _stages(one):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    one(provider.get_tracer("t"))
    return collections.Counter((s.attributes or {}).get("rag.stage") for s in exporter.get_finished_spans())


def test_both_sides_make_the_same_six_spans():
    """A request and five stages on either side."""
    ours = _stages(tracing._ours)
    assert ours == _stages(tracing._bare)
    assert sum(ours.values()) == 6


def test_it_reports_both_sides_and_the_limit(monkeypatch):
    """Each figure stands beside the bare SDK's of the same run."""
    monkeypatch.setattr(tracing, "ROUNDS", 2)
    monkeypatch.setattr(tracing, "REQUESTS_A_ROUND", 5)
    result = tracing.run()
    assert result["limit_unsampled_us"] == 50.0
    for name in ("unsampled", "sampled"):
        assert result[f"{name}_ours_us"] > 0 < result[f"{name}_bare_sdk_us"]
