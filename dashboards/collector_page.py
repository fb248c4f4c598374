"""The Collector page: do spans and logs arrive, which traces are kept, and what did spans leave out?"""

from dashboards.common import RATE, alert_annotation
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.steps import bad_above
from dashboards.style import GREEN, GREY, RED, Json, dashboard, query, variable
from slo.names import rag, traces
from slo.names.dashboards import COLLECTOR_UID
from slo.spec import Spec

OWN = f'job="{rag.JOB_COLLECTOR}",instance=~"$instance"'
SOURCE = "the collector's own metrics"
SOURCE_SPANS = "the collector, from spans"
ACCEPTED = "otelcol_receiver_accepted_spans"
REFUSED, UNREADABLE = "otelcol_receiver_refused_spans", "otelcol_receiver_failed_spans"
UNSENT, UNQUEUED = "otelcol_exporter_send_failed_spans", "otelcol_exporter_enqueue_failed_spans"


def build(spec: Spec) -> Json:
    """The page of the collector; its queue's limit comes from *spec*."""
    return dashboard(
        uid=COLLECTOR_UID,
        title="Collector: do all spans arrive, and which traces are kept?",
        description="What the collector takes, refuses, keeps and sends; and what spans did not say.",
        panels=lay_out([_answer(spec), _through(spec), _kept(), _said(), _cost()]),
        variables=[variable("instance", "Collector", f'label_values({ACCEPTED}{{job="{rag.JOB_COLLECTOR}"}}, instance)')],
        annotations=[alert_annotation("")],
        tags=("traces",),
    )  # fmt: skip


def _of(metric: str) -> str:
    return f"{metric}{{{OWN}}}"


def _spelt(name: str) -> str:
    """A counter with or without `_total`, which depends on the collector's version; there is one of the two."""
    return f'{{__name__=~"{name}(_total)?",{OWN}}}'


def _happened(*names: str) -> str:
    """Events over the chosen time; a counter of failures is not there before the first one."""
    return " + ".join(f"(sum(increase({_spelt(name)}[$__range])) or vector(0))" for name in names)


def _full(by: str) -> str:
    size, capacity = _of("otelcol_exporter_queue_size"), _of("otelcol_exporter_queue_capacity")
    return f"max by ({by}) ({size} / {capacity})"


def _answer(spec: Spec) -> Band:
    queue = spec.rag.collector.max_queue_ratio
    return Band(
        5,
        [
            stat(
                "Spans accepted",
                "Spans that the receivers took.",
                SOURCE,
                [query(f"sum(rate({_of(ACCEPTED)}[{RATE}]))")],
                "cps",
                width=5,
                decimals=1,
            ),
            stat(
                "Spans refused",
                "Spans that the receivers refused or could not read, over the chosen time.",
                SOURCE,
                [query(_happened(REFUSED, UNREADABLE), instant=True)],
                "none",
                steps=bad_above(1, 1),
                width=5,
                decimals=0,
                spark=False,
                unit_words="spans",
            ),
            stat(
                "Spans lost",
                "Spans that could not be sent in time or did not fit into a queue, over the chosen time.",
                SOURCE,
                [query(_happened(UNSENT, UNQUEUED), instant=True)],
                "none",
                steps=bad_above(1, 1),
                width=5,
                decimals=0,
                spark=False,
                unit_words="spans",
            ),
            stat(
                "Fullest queue",
                f"How full the fullest queue to a backend is; over {queue:.0%} warns.",
                SOURCE,
                [query(f"max({_full('exporter')})")],
                "percentunit",
                steps=bad_above(queue),
                width=5,
                decimals=1,
                no_value="no queue",
            ),
            stat(
                "Firing models",
                "Models whose traces are all kept now, because an alert of theirs fires.",
                "the watcher of Prometheus' alerts",
                [query(f"max({traces.FIRING_MODELS})")],
                "none",
                width=4,
                decimals=0,
                unit_words="models",
                no_value="not watched",
            ),
        ],
    )


def _through(spec: Spec) -> Band:
    return Band(
        8,
        [
            timeseries(
                "Arriving and leaving",
                "Spans accepted by protocol, and spans sent by backend; production sends the traces that it keeps.",
                SOURCE,
                [
                    query(f"sum by (transport) (rate({_of(ACCEPTED)}[{RATE}]))", "accepted over {{transport}}"),
                    query(f"sum by (exporter) (rate({_of('otelcol_exporter_sent_spans')}[{RATE}]))", "sent to {{exporter}}"),
                ],
                "cps",
                width=8,
                many=True,
            ),
            timeseries(
                "Refused and lost",
                "Spans refused, unreadable, not sent or not queued, by what happened; nothing is shown while none are.",
                SOURCE,
                [
                    query(f"sum by ({by}) (rate({_spelt(name)}[{RATE}])) > 0", f"{what} {{{{{by}}}}}")
                    for name, by, what in (
                        (REFUSED, "receiver", "refused by"),
                        (UNREADABLE, "receiver", "unreadable for"),
                        (UNSENT, "exporter", "not sent to"),
                        (UNQUEUED, "exporter", "not queued for"),
                    )
                ],
                "cps",
                width=8,
                many=True,
                no_value="none",
            ),
            timeseries(
                "Queues",
                "How full the queue to each backend is; it stands on disk and outlives a restart.",
                SOURCE,
                [query(_full("exporter"), "{{exporter}}")],
                "percentunit",
                width=8,
                maximum=1,
                limits=((spec.rag.collector.max_queue_ratio, RED),),
                many=True,
            ),
        ],
        "Way through",
    )  # fmt: skip


def _kept() -> Band:
    judged = "otelcol_processor_tail_sampling_global_count_traces_sampled"
    policy = "otelcol_processor_tail_sampling_count_traces_sampled"
    return Band(
        8,
        [
            timeseries(
                "Traces kept and not",
                "Traces by what was decided when they were whole; errors, slow ones and those of firing models are kept.",
                SOURCE,
                [
                    query(f'sum(rate({judged}{{sampled="true",{OWN}}}[{RATE}]))', "kept"),
                    query(f'sum(rate({judged}{{sampled="false",{OWN}}}[{RATE}]))', "not kept"),
                ],
                "cps",
                width=8,
                stack=True,
                colours=(GREEN, GREY),
                unit_words="traces per second",
            ),
            timeseries(
                "Why traces are kept",
                "Traces that each rule of the sampling would keep; one trace may have several reasons.",
                SOURCE,
                [query(f'sum by (policy) (rate({policy}{{sampled="true",{OWN}}}[{RATE}]))', "{{policy}}")],
                "cps",
                width=8,
                many=True,
                unit_words="traces per second",
            ),
            timeseries(
                "Traces waiting to be judged",
                "Traces in memory until they are whole or their time is up.",
                SOURCE,
                [query(f"sum({_of('otelcol_processor_tail_sampling_sampling_traces_on_memory')})", "traces")],
                "none",
                width=8,
                unit_words="traces",
            ),
        ],
        "Sampling",
    )


def _said() -> Band:
    return Band(
        8,
        [
            timeseries(
                "What spans left out",
                "Fields that neither an engine's span nor its caller gave, and spans that ended before they began.",
                SOURCE_SPANS,
                [
                    query(f"sum by (field) (rate({traces.SPAN_MISSING}[{RATE}]))", "no {{field}}"),
                    query(f"sum(rate({traces.SPAN_INVALID_TIME}[{RATE}]))", "ended before it began"),
                ],
                "cps",
                width=6,
                many=True,
                unit_words="spans per second",
            ),
            timeseries(
                "Broken traceparents",
                "Requests whose trace context could not be used, by reason; each began a trace of its own.",
                "the RAG service's /metrics",
                [query(f"sum by (reason) (rate({rag.BROKEN_TRACEPARENTS}[{RATE}]))", "{{reason}}")],
                "reqps",
                width=6,
                many=True,
                no_value="none",
            ),
            timeseries(
                "Tokens that spans tell of",
                "Input and output tokens by the usage on spans.",
                SOURCE_SPANS,
                [query(f"sum by (type) (rate({traces.SPAN_TOKENS}[{RATE}]))", "{{type}}")],
                "none",
                width=6,
                many=True,
                unit_words="tokens per second",
            ),
            timeseries(
                "Errors in logs",
                "Log records of ERROR and worse, by service.",
                "the collector, from logs",
                [query(f"sum by (service_name) (rate({traces.LOG_ERRORS}[{RATE}]))", "{{service_name}}")],
                "cps",
                width=6,
                many=True,
                no_value="none",
            ),
        ],
        "What spans and logs say",
    )


def _cost() -> Band:
    return Band(
        7,
        [
            timeseries(
                "CPU of the collector",
                "Cores that each collector uses.",
                SOURCE,
                [
                    query(
                        f"sum by (instance) (rate({_of('otelcol_process_cpu_seconds')}[{RATE}]))",
                        "{{instance}}",
                    )
                ],
                "none",
                width=12,
                many=True,
                unit_words="cores",
            ),
            timeseries(
                "Memory of the collector",
                "Resident memory of each collector; near its limit it refuses spans.",
                SOURCE,
                [query(f"max by (instance) ({_of('otelcol_process_memory_rss')})", "{{instance}}")],
                "bytes",
                width=12,
                many=True,
            ),
        ],
        "What it costs",
    )
