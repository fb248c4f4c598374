"""The collector's own metrics -> alerts on spans that it refuses, loses or piles up.

Counters are read with and without `_total`, which depends on the collector's version and how its metrics are read.
A counter of failures is not there before the first one: its birth counts as well.
"""

from functools import partial

from alerts.promql import window
from alerts.rule import Alert
from alerts.stack_alert import stack_alert
from alerts.texts import looked_up, percent, span
from slo.names import alerts
from slo.names import rag as names
from slo.spec import Spec

_alert = partial(stack_alert, page="collector")
REFUSED = ("otelcol_receiver_refused_spans", "otelcol_receiver_failed_spans")
LOST = {
    "could not be sent": "otelcol_exporter_send_failed_spans",
    "did not fit into the queue": "otelcol_exporter_enqueue_failed_spans",
    "traces dropped before they were judged": "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early",
}


def counted(counter: str, by: str, over: str) -> str:
    """Events within the range by *by*, from the first one on; empty where there was none."""
    seconds = over.strip("[]")
    found = []
    for name in (counter, f"{counter}_total"):
        own = f'{name}{{job="{names.JOB_COLLECTOR}"}}'
        found += [
            f"(sum by ({by}) (increase({own}{over})) > 0)",
            f"(sum by ({by}) ({own} unless {own} offset {seconds}) > 0)",
        ]
    return "\nor ".join(found)


def collector_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return the collector's alerts; slow evaluation."""
    over, minutes = window(spec.stack.window), span(spec.stack.window)
    jobs = f"{names.JOB_COLLECTOR}|{names.JOB_SPANS}"
    refused = "\nor ".join(
        f'label_replace({counted(one, "receiver, transport", over)}, "what", "{one}", "", "")'
        for one in REFUSED
    )
    lost = "\nor ".join(
        f'label_replace({counted(one, "exporter", over)}, "what", "{what}", "", "")'
        for what, one in LOST.items()
    )
    queue, targets = spec.rag.collector, looked_up("count(up{job=%q})", "job")
    return (
        _alert(
            spec,
            alerts.COLLECTOR_DOWN,
            f'max by (job) (up{{job=~"{jobs}"}}) == 0',
            "ticket",
            "The collector of spans cannot be scraped (job {{ $labels.job }})",
            f"Now: 0 of {targets} targets answered for over {span(spec.stack.alertmanager_down.for_)}. Promised: an answer "
            f"to every scrape, one every {span(spec.intervals.scrape_seconds)}. Stages of RAG requests and of "
            "the engine are unknown, and traces may be lost.",
            spec.stack.alertmanager_down.for_,
        ),
        _alert(
            spec,
            alerts.SPANS_REFUSED,
            refused,
            "ticket",
            "The collector refuses spans ({{ $labels.receiver }}, {{ $labels.transport }})",
            f"Now: {{{{ $value | humanize }}}} spans in {minutes}. Promised: none. Its memory limit was reached or a "
            "pipeline failed: stage metrics count too little.",
        ),
        _alert(
            spec,
            alerts.SPANS_LOST,
            lost,
            "ticket",
            "The collector loses spans: {{ $labels.what }}{{ with $labels.exporter }} ({{ . }}){{ end }}",
            f"Now: {{{{ $value | humanize }}}} in {minutes}. Promised: none. Span metrics are not touched by it: they are "
            "made before. Traces have holes.",
        ),
        _alert(
            spec,
            alerts.SPAN_QUEUE_FILLING,
            f"max by (instance, exporter, data_type) (otelcol_exporter_queue_size)\n"
            f"/ (max by (instance, exporter, data_type) (otelcol_exporter_queue_capacity) > 0) > {queue.max_queue_ratio:g}",
            "warning",
            "The collector's queue to {{ $labels.exporter }} is {{ $value | humanizePercentage }} full",
            f"Now: {{{{ $value | humanizePercentage }}}} of its room is taken. Wanted: at most "
            f"{percent(queue.max_queue_ratio)}. The backend is slow or gone; when the queue is full, "
            "what comes is dropped.",
            queue.for_,
        ),
    )  # fmt: skip
