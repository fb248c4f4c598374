"""The watchers' own metrics -> alerts on exporters, Prometheus and Alertmanager, and a dead man's switch."""

from alerts.collector import collector_alerts
from alerts.promql import window
from alerts.rule import Alert
from alerts.stack_alert import stack_alert
from alerts.texts import looked_up, percent, span
from slo.duration import format_seconds
from slo.names import alerts, labels
from slo.names import rag as names
from slo.spec import Spec

EXPORTER_JOBS = (labels.JOB_ENGINE, labels.JOB_ENGINE_EXPORTER, labels.JOB_CANARY, labels.JOB_DRIFT)

INGESTION_COUNTERS = {
    "out-of-order samples": "prometheus_target_scrapes_sample_out_of_order_total",
    "duplicate timestamps": "prometheus_target_scrapes_sample_duplicate_timestamp_total",
    "samples out of bounds": "prometheus_target_scrapes_sample_out_of_bounds_total",
    "sample limit": "prometheus_target_scrapes_exceeded_sample_limit_total",
    "body size limit": "prometheus_target_scrapes_exceeded_body_size_limit_total",
    "write-ahead log writes": "prometheus_tsdb_wal_writes_failed_total",
    "write-ahead log corruption": "prometheus_tsdb_wal_corruptions_total",
    "compaction": "prometheus_tsdb_compactions_failed_total",
    "head truncation": "prometheus_tsdb_head_truncations_failed_total",
    "block reload": "prometheus_tsdb_reloads_failures_total",
}
"""What Prometheus lost or refused -> its counter; all are there from its start, on 2.42 and 3."""


def quick_stack_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what is judged at every evaluation: blindness, and the sign of life."""
    jobs, patience = "|".join(EXPORTER_JOBS), spec.stack.exporter_down.for_
    targets = looked_up("count(up{job=%q})", "job")
    return (
        stack_alert(
            spec,
            alerts.EXPORTER_DOWN,
            f'max by (job) (up{{job=~"{jobs}"}}) == 0',
            "page",
            "Inferwatch is blind: no target of job {{ $labels.job }} can be scraped",
            f"Now: 0 of {targets} targets answered for over {span(patience)}. Promised: an answer to every scrape, one "
            f"every {span(spec.intervals.scrape_seconds)}. Engines may be well or not: nothing of them is known.",
            patience,
        ),
        stack_alert(
            spec,
            alerts.WATCHDOG,
            "vector(1)",
            "none",
            "Alerting works",
            "Always firing. Whoever receives it must sound the alarm when it stops: then Prometheus, "
            f"Alertmanager or the way out is broken. It comes every {span(spec.intervals.watchdog_repeat_seconds)}.",
        ),
    )


def slow_stack_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what may wait for the slow evaluation."""
    return (
        *_prometheus_alerts(spec),
        *_alertmanager_alerts(spec),
        *collector_alerts(spec),
    )


def _prometheus_alerts(spec: Spec) -> tuple[Alert, ...]:
    over, minutes = window(spec.stack.window), span(spec.stack.window)
    scrapes, unsent = spec.trust.scrapes, spec.stack.alerts_not_sent
    rag = f'up{{job="{names.JOB_RAG}"}}'
    refused = "\nor\n".join(
        f'label_replace(sum by (instance) (increase({counter}{over})), "what", "{what}", "", "")'
        for what, counter in INGESTION_COUNTERS.items()
    )
    return (
        stack_alert(
            spec,
            alerts.SCRAPES_FAILING,
            # A RAG service that is gone pages without naming its instances.
            f"""
            avg by (job, instance) (avg_over_time(up{window(scrapes.window)})) < {scrapes.min_success_ratio:g}
            unless on (job, instance) ({rag} and on (service) (max by (service) ({rag}) == 0))
            """,
            "warning",
            "Only {{ $value | humanizePercentage }} of scrapes of {{ $labels.instance }} ({{ $labels.job }}) succeed",
            f"Now: {{{{ $value | humanizePercentage }}}} over {span(scrapes.window)}. Wanted: at least "
            f"{percent(scrapes.min_success_ratio)}. Its numbers have gaps.",
            scrapes.for_,
        ),
        stack_alert(
            spec,
            alerts.RULE_EVALUATION_FAILING,
            f"sum by (rule_group) (increase(prometheus_rule_evaluation_failures_total{over})) > 0",
            "ticket",
            "Rules fail in {{ $labels.rule_group }}",
            f"Now: {{{{ $value | humanize }}}} evaluations failed in {minutes}. Promised: none. Alerts built on those "
            "rules are blind.",
        ),
        stack_alert(
            spec,
            alerts.RULE_EVALUATION_SLOW,
            f"sum by (rule_group) (increase(prometheus_rule_group_iterations_missed_total{over})) > 0",
            "ticket",
            "Rule group {{ $labels.rule_group }} misses evaluations",
            f"Now: {{{{ $value | humanize }}}} were missed in {minutes}, because one takes longer than its interval. "
            "Promised: none. Alerts come late.",
            spec.stack.rules_slow.for_,
        ),
        stack_alert(
            spec,
            alerts.INGESTION_FAILING,
            f"(\n{refused}\n) > 0",
            "ticket",
            "Prometheus loses samples: {{ $labels.what }}",
            f"Now: {{{{ $value | humanize }}}} times in {minutes}. Promised: none. What is lost cannot be judged.",
        ),
        stack_alert(
            spec,
            alerts.PROMETHEUS_CONFIG_FAILED,
            "prometheus_config_last_reload_successful == 0",
            "ticket",
            "Prometheus runs on an old configuration",
            f"Now: the last reload failed, over {span(spec.stack.config_failed.for_)} ago. Promised: what is deployed is "
            "what runs. Changes of targets and rules are not in force.",
            spec.stack.config_failed.for_,
        ),
        stack_alert(
            spec,
            alerts.ALERTS_NOT_SENT,
            _unsent(spec),
            "page",
            "Alerts do not reach any Alertmanager",
            f"Now: 0 Alertmanagers took alerts from Prometheus for over {span(unsent.for_)}, or it knows none. Promised: at "
            f"least 1 takes each alert. Pages may be missing. It is told for {minutes} after the end, because it may not "
            "have got out before.",
        ),
    )


def _unsent(spec: Spec) -> str:
    """While it is true nobody may hear of it, so it stays true for the stack's window (keep_firing_for is not
    understood by every evaluator of these rules).

    Drops are counted by Alertmanager in Prometheus 3; before, one counter has what none of them took.
    """
    unsent, every = spec.stack.alerts_not_sent, spec.intervals.slow_evaluation_seconds
    held, told = (
        f"[{format_seconds(length)}:{format_seconds(every)}]" for length in (unsent.for_, spec.stack.window)
    )
    return "\nor ".join(
        f"max_over_time(sum_over_time(({nobody}){held}){told}) >= {unsent.for_ // every}"
        for nobody in (
            f"min by (instance) (increase(prometheus_notifications_dropped_total{window(unsent.window)})) > bool 0",
            "max by (instance) (prometheus_notifications_alertmanagers_discovered) < bool 1",
        )
    )


def _alertmanager_alerts(spec: Spec) -> tuple[Alert, ...]:
    over, minutes = window(spec.stack.window), span(spec.stack.window)
    job = f'job="{labels.JOB_ALERTMANAGER}"'
    peers = looked_up(f"count(up{{{job}}})")
    return (
        stack_alert(
            spec,
            alerts.ALERTMANAGER_DOWN,
            f"up{{{job}}} == 0",
            "page",
            "Alertmanager {{ $labels.instance }} is down",
            f"Now: no answer for over {span(spec.stack.alertmanager_down.for_)}. Promised: one to every scrape, every "
            f"{span(spec.intervals.scrape_seconds)}. Unless another one of its "
            "cluster is up, nobody is notified of anything.",
            spec.stack.alertmanager_down.for_,
        ),
        stack_alert(
            spec,
            alerts.ALERTMANAGER_CONFIG_FAILED,
            "alertmanager_config_last_reload_successful == 0",
            "ticket",
            "Alertmanager runs on an old configuration",
            f"Now: the last reload failed, over {span(spec.stack.config_failed.for_)} ago. Promised: what is deployed is "
            "what runs. Changes of routes and receivers are not in force.",
            spec.stack.config_failed.for_,
        ),
        stack_alert(
            spec,
            alerts.ALERTMANAGER_CLUSTER_DEGRADED,
            f"alertmanager_cluster_members < on () group_left () count(up{{{job}}})",
            "ticket",
            "Alertmanager {{ $labels.instance }} does not see its peers",
            f"Now: {{{{ $value }}}} of {peers} are in its cluster, for over {span(spec.stack.cluster_degraded.for_)}. "
            "Promised: one cluster with all that are scraped. Notifications come twice, or silences hold on one side only.",
            spec.stack.cluster_degraded.for_,
        ),
        stack_alert(
            spec,
            alerts.NOTIFICATIONS_FAILING,
            f"sum by (integration) (increase(alertmanager_notifications_failed_total{over})) > 0",
            "page",
            "Notifications by {{ $labels.integration }} fail",
            f"Now: {{{{ $value | humanize }}}} were given up in {minutes}, their retries over or refused for good. Promised: "
            "none; each alert arrives. People may not hear of what is wrong.",
        ),
    )
