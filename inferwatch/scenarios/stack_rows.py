"""Rows of the stack itself: its exporters, rules, configurations, notifications, and the dead man's switch."""

from inferwatch.scenarios.faults import BrokenConfig, BrokenRule, Kill, Restart, SampleLimit
from inferwatch.scenarios.row import Expected, Row
from inferwatch.scenarios.watchers_stage import SECOND_ALERTMANAGER, SECOND_RECEIVER
from slo.names import alerts, labels

WATCHERS = (
    Row(
        "canary-lost",
        Kill("exporter-canary"),
        fires=(Expected(alerts.EXPORTER_DOWN, {"job": labels.JOB_CANARY}),),
        # Five minutes hold the gap after the canary is back.
        may_fire=(alerts.SCRAPES_FAILING,),
        silent=(alerts.CANARY_FAILING,),
        stage="watchers",
        engines=0,
        ci=True,
    ),
    Row(
        "exporter-lost",
        Kill("exporter-engine"),
        fires=(
            # The lost canary of the row before is the same kind of page.
            Expected(alerts.EXPORTER_DOWN, {"job": labels.JOB_ENGINE}, joins=True),
            Expected(alerts.EXPORTER_DOWN, {"job": labels.JOB_ENGINE_EXPORTER}, joins=True),
        ),
        # The engine is unknown then, which is neither down nor gone.
        silent=(alerts.ENGINE_DOWN, alerts.SERVICE_DOWN, alerts.TARGET_VANISHED),
        stage="watchers",
        engines=0,
        after=("canary-lost",),
    ),
    Row(
        "node-agent-lost",
        Kill("exporter-node"),
        fires=(Expected(alerts.NODE_AGENT_DOWN),),
        stage="watchers",
        engines=0,
    ),
    Row(
        "rule-broken",
        BrokenRule(),
        fires=(Expected(alerts.RULE_EVALUATION_FAILING),),
        stage="watchers",
        engines=0,
        ci=True,
    ),
    Row(
        "samples-lost",
        SampleLimit("limited"),
        fires=(
            Expected(alerts.INGESTION_FAILING, {"what": "sample limit"}),
            Expected(alerts.SCRAPES_FAILING, {"job": "limited"}),
        ),
        stage="watchers",
        engines=0,
    ),
    Row(
        "prometheus-config",
        BrokenConfig("prometheus"),
        fires=(Expected(alerts.PROMETHEUS_CONFIG_FAILED),),
        stage="watchers",
        engines=0,
        after=("rule-broken", "samples-lost"),
    ),
    Row(
        "alertmanager-config",
        BrokenConfig("alertmanager"),
        fires=(Expected(alerts.ALERTMANAGER_CONFIG_FAILED),),
        stage="watchers",
        engines=0,
    ),
    Row(
        "webhook-down",
        Kill(SECOND_RECEIVER),
        fires=(Expected(alerts.NOTIFICATIONS_FAILING),),
        stage="watchers",
        engines=0,
        # Alertmanager begins its retries anew when it reads its configuration again.
        after=("alertmanager-config",),
    ),
    Row(
        "alertmanager-lost",
        Kill(SECOND_ALERTMANAGER),
        fires=(
            Expected(alerts.ALERTMANAGER_DOWN),
            Expected(alerts.ALERTMANAGER_CLUSTER_DEGRADED),
        ),
        may_fire=(alerts.SCRAPES_FAILING,),
        # The other one takes them.
        silent=(alerts.ALERTS_NOT_SENT,),
        fault_seconds=300.0,
        stage="watchers",
        engines=0,
    ),
)

SENTINEL = (
    Row(
        "alertmanager-restarted",
        Restart("alertmanager"),
        fires=(
            Expected(alerts.WATCHDOG, recovers_seconds=None, why_not_shown="it always fires: it came again"),
        ),
        silent=(alerts.ALERTMANAGER_DOWN,),
        stage="sentinel",
        engines=0,
    ),
    Row(
        "prometheus-killed",
        Kill("prometheus"),
        fires=(Expected(alerts.WATCHDOG, status="resolved"),),
        stage="sentinel",
        engines=0,
        after=("alertmanager-restarted",),
    ),
    Row(
        # Before it the page must not have come: a restart that meets one of Prometheus' own sends is a send that failed.
        "alerts-cut-off",
        Kill("alertmanager"),
        fires=(
            Expected(
                alerts.ALERTS_NOT_SENT,
                afterwards=True,
                recovers_seconds=None,
                why_not_shown="it is told for five minutes more: it ends after the run",
            ),
        ),
        may_fire=(alerts.ALERTMANAGER_DOWN,),
        stage="sentinel",
        engines=0,
        # A send within 65 s, its scrape, an evaluation, three minutes.
        fault_seconds=330.0,
        after=("alertmanager-restarted", "prometheus-killed"),
    ),
)
