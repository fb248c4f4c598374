"""The Stack health page: can these numbers and alerts be trusted?"""

from grafanalib.core import Template

from dashboards.common import RATE, annotations
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, state_timeline, timeseries
from dashboards.steps import bad_above, states
from dashboards.style import GREEN, ORANGE, RED, SKY, Json, dashboard, query, variable
from slo.names import alerts, analysis, canary, engine, labels
from slo.names.dashboards import STACK_UID
from slo.spec import Spec

JOB = 'job=~"$job"'
PROMETHEUS = "Prometheus' own metrics"
ALERTMANAGER = "Alertmanager's own metrics"
EVERY_SCRAPE = "what Prometheus records of each scrape"


def build(spec: Spec) -> Json:
    """The Stack health page; intervals that things must keep up with come from *spec*."""
    return dashboard(
        uid=STACK_UID,
        title="Stack health: can these numbers be trusted?",
        description="Whether everything is scraped, judged in time and delivered, and what the stack itself costs.",
        panels=lay_out([_answer(), _targets(spec), _probes(spec), _judging(spec), _cost()]),
        variables=_variables(),
        annotations=annotations(),
        tags=("stack",),
    )


def _variables() -> list[Template]:
    return [
        variable("job", "Job", "label_values(up, job)"),
        variable("service", "Service", f"label_values({engine.PROBE_SUCCESS}, service)"),
        variable("instance", "Instance", f"label_values({engine.PROBE_SUCCESS}, instance)"),
    ]


def _answer() -> Band:
    return Band(
        5,
        [
            stat(
                "Targets not scraped",
                "Scrape targets that did not answer; their numbers are missing, not zero.",
                EVERY_SCRAPE,
                [query(f"count(up{{{JOB}}} == 0) or vector(0)")],
                "none",
                steps=bad_above(1, 2),
                width=5,
                unit_words="targets",
            ),
            stat(
                "Dead man's switch",
                f"Whether the alert {alerts.WATCHDOG} fires, as it always must; if not, no alert can be trusted.",
                "ALERTS of Prometheus",
                [query(f'count(ALERTS{{alertname="{alerts.WATCHDOG}",alertstate="firing"}}) or vector(0)')],
                "none",
                steps=((None, RED), (1, GREEN)),
                mappings=states({0: ("silent", RED), 1: ("alive", GREEN)}),
                width=5,
                spark=False,
                unit_words="a state by name",
            ),
            stat(
                "Rule failures",
                "Rule evaluations that failed; what they should have judged was not judged.",
                PROMETHEUS,
                [query(f"sum(rate(prometheus_rule_evaluation_failures_total[{RATE}]))")],
                "cps",
                steps=bad_above(1e-9),
                width=5,
            ),
            stat(
                "Notifications that failed",
                "Notifications that Alertmanager could not deliver, and alerts that never reached it.",
                f"{ALERTMANAGER} and {PROMETHEUS}",
                [
                    query(
                        f"sum(rate(alertmanager_notifications_failed_total[{RATE}]))"
                        f" + sum(rate(prometheus_notifications_errors_total[{RATE}]))"
                    )
                ],
                "cps",
                steps=bad_above(1e-9),
                width=5,
            ),
            stat(
                "Analysis read",
                "Seconds since the analysis exporter last read the history.",
                "exporters/analysis",
                [query(f"time() - max({analysis.LAST_SUCCESS})")],
                "s",
                steps=((None, GREEN),),
                width=4,
                spark=False,
                no_value="never",
            ),
        ],
    )


def _targets(spec: Spec) -> Band:
    return Band(
        8,
        [
            state_timeline(
                "Scrape targets",
                "Whether each target answered its scrape.",
                EVERY_SCRAPE,
                [query(f"min by (job, instance) (up{{{JOB}}})", "{{job}} {{instance}}")],
                states({0: ("down", RED), 1: ("up", GREEN)}),
                width=16,
                unit_words="a state by name",
            ),
            timeseries(
                "Scrape duration",
                f"The slowest scrape of each job; at {spec.intervals.scrape_timeout_seconds:g} s it is given up.",
                EVERY_SCRAPE,
                [query(f"max by (job) (scrape_duration_seconds{{{JOB}}})", "{{job}}")],
                "s",
                width=8,
                many=True,
                limits=((spec.intervals.scrape_timeout_seconds, RED),),
            ),
        ],
        "Is everything read?",
    )


def _probes(spec: Spec) -> Band:
    chosen = f'service=~"$service",{labels.INSTANCE}=~"$instance"'
    return Band(
        8,
        [
            state_timeline(
                "Why probes failed",
                "The reason of each failed probe, by engine; nothing is shown while they succeed.",
                f"{engine.PROBE_FAILURE} of exporters/engine",
                [
                    query(
                        f"max by (instance, reason) ({engine.PROBE_FAILURE}{{{chosen}}}) == 1",
                        "{{instance}} {{reason}}",
                    )
                ],
                states({1: ("failed", RED)}),
                width=8,
                no_value="no probe failed",
                unit_words="a state by name",
            ),
            timeseries(
                "Probe duration",
                "How long the exporter needed to read and translate each engine's page.",
                f"{engine.PROBE_DURATION_SECONDS} of exporters/engine",
                [query(f"max by (instance) ({engine.PROBE_DURATION_SECONDS}{{{chosen}}})", "{{instance}}")],
                "s",
                width=8,
                many=True,
            ),
            timeseries(
                "Canary requests by result",
                f"One-token requests, one every {spec.canary.interval_seconds:g} s and engine, by how they ended.",
                f"{canary.REQUESTS} of exporters/canary",
                [query(f"sum by (result) (rate({canary.REQUESTS}{{{chosen}}}[{RATE}])) > 0", "{{result}}")],
                "reqps",
                width=8,
                many=True,
            ),
        ],
        "Are engines read and asked?",
    )


def _judging(spec: Spec) -> Band:
    group = 'max by (group) (label_replace(%s, "group", "$1", "rule_group", ".*;(.*)"))'
    return Band(
        8,
        [
            timeseries(
                "Rule evaluation",
                "How long the last evaluation of each rule group took; over its interval, alerts come late.",
                PROMETHEUS,
                [
                    query(
                        group % "prometheus_rule_group_last_duration_seconds",
                        "{{group}}",
                    )
                ],
                "s",
                width=8,
                many=True,
                limits=((spec.intervals.evaluation_seconds, RED),),
            ),
            timeseries(
                "Notifications sent",
                "Notifications that Alertmanager tried to deliver, by integration.",
                ALERTMANAGER,
                [
                    query(
                        f"sum by (integration) (rate(alertmanager_notifications_total[{RATE}])) > 0",
                        "{{integration}}",
                    )
                ],
                "cps",
                width=8,
                many=True,
            ),
            timeseries(
                "Series and samples",
                "Series in memory; a steady climb is a label that never repeats.",
                PROMETHEUS,
                [query("sum by (instance) (prometheus_tsdb_head_series)", "{{instance}}")],
                width=8,
                many=True,
                colours=(SKY,),
                unit_words="series",
            ),
        ],
        "Is it judged and delivered in time?",
    )


def _cost() -> Band:
    return Band(
        7,
        [
            timeseries(
                "CPU of the stack",
                "Cores that each part of the stack itself uses.",
                "process metrics of each part",
                [query(f"sum by (job) (rate(process_cpu_seconds_total{{{JOB}}}[{RATE}]))", "{{job}}")],
                "none",
                width=12,
                many=True,
                unit_words="CPU cores",
            ),
            timeseries(
                "Memory of the stack",
                "Resident memory of each part of the stack itself.",
                "process metrics of each part",
                [query(f"sum by (job) (process_resident_memory_bytes{{{JOB}}})", "{{job}}")],
                "bytes",
                width=12,
                many=True,
                colours=(ORANGE,),
            ),
        ],
        "What the stack itself costs",
    )
