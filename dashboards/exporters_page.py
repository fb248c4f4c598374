"""The Exporters page: which exporter reads badly, falls behind or costs too much?"""

from dashboards.common import RATE, alert_annotation
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, state_timeline, timeseries
from dashboards.steps import bad_above, states
from dashboards.style import GREEN, RED, Json, dashboard, query, variable
from slo.names import analysis, canary, drift, engine, node
from slo.names.dashboards import EXPORTERS_UID
from slo.spec import Spec

ENGINE, CANARY = "exporters/engine", "exporters/canary"
NODE, DRIFT, ANALYSIS = "exporters/node", "exporters/drift", "exporters/analysis"
AGENT = 'instance=~"$agent"'


def build(spec: Spec) -> Json:
    """The page of our own exporters; how often each must come round comes from *spec*."""
    return dashboard(
        uid=EXPORTERS_UID,
        title="Exporters: which of them reads badly, or falls behind?",
        description="What the exporters say of themselves: readings that failed, delays, what they hold and cost.",
        panels=lay_out([_answer(spec), _engine(), _node(spec), _others(spec)]),
        variables=[
            variable("service", "Service", f"label_values({engine.PROBE_SUCCESS}, service)"),
            variable("agent", "Node agent", f"label_values({node.NODE_INFO}, instance)"),
        ],
        annotations=[alert_annotation("")],
        tags=("stack",),
    )


def _of_agent(metric: str, more: str = "") -> str:
    return f"{metric}{{{more + ',' if more else ''}{AGENT}}}"


def _answer(spec: Spec) -> Band:
    read = f"time() - max({analysis.LAST_SUCCESS})"
    tried = f"time() - min({canary.LAST_ATTEMPT})"
    return Band(
        5,
        [
            stat(
                "Node readings that fail",
                "Sources of node agents whose last reading did not work.",
                NODE,
                [query(f"count({_of_agent(node.COLLECTOR_SUCCESS)} == 0) or vector(0)")],
                "none",
                steps=bad_above(1, 2),
                width=5,
                unit_words="sources",
            ),
            stat(
                "Canary's targets are read",
                "Whether the file of the canary's targets is valid; else it goes on with what it knew.",
                CANARY,
                [query(f"min({canary.TARGETS_FILE_VALID})")],
                "none",
                mappings=states({0: ("broken", RED), 1: ("yes", GREEN)}),
                width=5,
                spark=False,
                unit_words="yes or broken",
            ),
            stat(
                "Last canary request",
                f"Seconds since the engine asked longest ago was asked; a sick one every "
                f"{spec.canary.backoff_max_seconds:g} s.",
                CANARY,
                [query(tried)],
                "s",
                steps=bad_above(2 * spec.canary.backoff_max_seconds),
                width=5,
                decimals=0,
            ),
            stat(
                "Analysis",
                f"Seconds since the history was last read; every {spec.analysis.every} s it should be.",
                ANALYSIS,
                [query(read)],
                "s",
                steps=bad_above(3 * spec.analysis.every),
                width=5,
                decimals=0,
            ),
            stat(
                "Analysis readings that failed",
                "Times that Prometheus could not be read, since its start.",
                ANALYSIS,
                [query(f"sum({analysis.ERRORS})")],
                "none",
                width=4,
                decimals=0,
                unit_words="readings",
            ),
        ],
    )


def _engine() -> Band:
    own = 'service=~"$service"'
    spent, pages = engine.EXPORTER_TRANSLATE_SECONDS + "_sum", engine.EXPORTER_TRANSLATE_SECONDS + "_count"
    return Band(
        8,
        [
            timeseries(
                "Engine pages",
                "Series that each engine's page has, and lines that could not be read; a steady climb is a label "
                "that never repeats.",
                ENGINE,
                [
                    query(f"max by (instance) ({engine.PROBE_SERIES}{{{own}}})", "{{instance}}"),
                    query(
                        f"max by (instance) ({engine.PROBE_PARSE_ERRORS}{{{own}}}) > 0",
                        "{{instance}}, unreadable",
                    ),
                ],
                "none",
                width=6,
                many=True,
                unit_words="series, lines",
            ),
            timeseries(
                "Size of engine pages",
                "Bytes of each engine's page, and of the label texts that the exporter remembers.",
                ENGINE,
                [
                    query(f"max by (instance) ({engine.PROBE_BODY_BYTES}{{{own}}})", "{{instance}}"),
                    query(f"sum({engine.EXPORTER_CACHE_BYTES})", "label texts"),
                ],
                "bytes",
                width=6,
                many=True,
            ),
            timeseries(
                "Probes by result",
                "Probes by result, and requests that were refused.",
                ENGINE,
                [
                    query(
                        f"sum by (result) (rate({engine.EXPORTER_PROBES_TOTAL}[{RATE}])) > 0", "{{result}}"
                    ),
                    query(f"sum(rate({engine.EXPORTER_REFUSED_TOTAL}[{RATE}]))", "refused"),
                ],
                "reqps",
                width=6,
                many=True,
            ),
            timeseries(
                "Translation of a page",
                "Mean time to translate one engine's page.",
                ENGINE,
                [query(f"sum(rate({spent}[{RATE}])) / sum(rate({pages}[{RATE}]))", "a page")],
                "s",
                width=6,
            ),
        ],
        "Engine exporter",
    )


def _node(spec: Spec) -> Band:
    late, ticks = _of_agent(node.SAMPLER_LATE_TOTAL), _of_agent(node.SAMPLER_TICKS_TOTAL)
    works = f"max by (instance, collector) ({_of_agent(node.COLLECTOR_SUCCESS)})"
    slowest = spec.node.sampling.slow_seconds
    return Band(
        8,
        [
            state_timeline(
                "Node agent: does each source read?",
                "Whether the last reading of each source worked.",
                NODE,
                [query(works, "{{collector}} {{instance}}")],
                states({0: ("fails", RED), 1: ("reads", GREEN)}),
                width=6,
                unit_words="a state by name",
            ),
            timeseries(
                "Node agent: age of readings",
                f"How old each source's last good reading is; the slowest is read every {slowest:g} s.",
                NODE,
                [query(f"max by (collector) ({_of_agent(node.COLLECTOR_AGE_SECONDS)})", "{{collector}}")],
                "s",
                width=6,
                many=True,
            ),
            timeseries(
                "Node agent: time of a reading",
                "How long each source's last reading took, and the scrape before this one to render.",
                NODE,
                [
                    query(
                        f"max by (collector) ({_of_agent(node.COLLECTOR_DURATION_SECONDS)})", "{{collector}}"
                    ),
                    query(f"max({_of_agent(node.SCRAPE_RENDER_SECONDS)})", "render"),
                ],
                "s",
                width=6,
                many=True,
            ),
            timeseries(
                "Node agent: late rounds",
                "Share of the sampler's rounds that began a whole interval late, and cores that its thread uses.",
                NODE,
                [
                    query(f"sum(rate({late}[{RATE}])) / sum(rate({ticks}[{RATE}]))", "late rounds"),
                    query(
                        f"sum(rate({_of_agent(node.SAMPLER_CPU_SECONDS_TOTAL)}[{RATE}]))", "CPU of one core"
                    ),
                ],
                "percentunit",
                width=6,
            ),
        ],
        "Node agent",
    )


def _others(spec: Spec) -> Band:
    of_tap = f"histogram_quantile(0.95, sum by (le) (rate({drift.TAP_DURATION}_bucket[{RATE}])))"
    return Band(
        8,
        [
            timeseries(
                "Canary: extra wait",
                f"Wait because of failures in a row, up to {spec.canary.backoff_max_seconds:g} s; 0 while an engine is well.",
                CANARY,
                [query(f'max by (instance) ({canary.BACKOFF}{{service=~"$service"}})', "{{instance}}")],
                "s",
                width=6,
                many=True,
            ),
            timeseries(
                "Drift: a round",
                "How long the last round over all streams took, and the P95 of embedding answers through the tap.",
                DRIFT,
                [query(f"max({drift.EVALUATION})", "round"), query(of_tap, "through the tap, P95")],
                "s",
                width=6,
            ),
            timeseries(
                "Drift: what is held",
                "Memory of the vectors that are held.",
                DRIFT,
                [query(f"sum({drift.MEMORY})", "vectors")],
                "bytes",
                width=6,
            ),
            timeseries(
                "Drift: what was not sampled",
                "Vectors or answers that were left out, by reason, and requests without the token.",
                DRIFT,
                [
                    query(f"sum by (reason) (rate({drift.DROPPED}[{RATE}])) > 0", "{{reason}}"),
                    query(f"sum(rate({drift.UNAUTHORISED}[{RATE}]))", "without its token"),
                ],
                "cps",
                width=6,
                many=True,
            ),
        ],
        "Canary and drift",
    )
