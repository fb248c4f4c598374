"""What the collector's benchmark sends: traces that no sampler has seen, as a RAG service makes them."""

from inferwatch.bench import collector


def test_each_request_holds_forty_new_traces_of_six_spans() -> None:
    """A root and five stages each, children of their root; a renewed request shares no trace id with the last one."""
    made = collector.request()
    seen: list[set[bytes]] = []
    for _ in range(2):
        collector.renew(made)
        spans = made.resource_spans[0].scope_spans[0].spans
        assert len(spans) == 240
        roots = {span.trace_id: span.span_id for span in spans if not span.parent_span_id}
        assert len(roots) == 40
        assert all(span.parent_span_id in (b"", roots[span.trace_id]) for span in spans)
        assert all(span.end_time_unix_nano - span.start_time_unix_nano == 20_000_000 for span in spans)
        seen.append(set(roots))

    assert not seen[0] & seen[1]


def test_its_spans_carry_content_that_the_collector_must_drop() -> None:
    """Dropping prompts is part of what is measured."""
    spans = collector.request().resource_spans[0].scope_spans[0].spans

    assert all("gen_ai.prompt" in {attribute.key for attribute in span.attributes} for span in spans)
