"""The failure matrix: a literal list of what is broken, what must be delivered then, and what must not."""

from inferwatch.scenarios.faults import (
    BrokenConfig,
    BrokenRule,
    Kill,
    Nothing,
    RemoveTarget,
    Restart,
    SampleLimit,
    Sim,
)
from inferwatch.scenarios.row import RECOVERY_SECONDS, Expected, History, Row
from inferwatch.scenarios.stages import SECOND_ALERTMANAGER, SECOND_RECEIVER
from slo.names import alerts, labels

HEALTHY_SECONDS = 600.0
TOO_LONG = "its short window is 2 h or more: it cannot end within the run"
AVAILABILITY, TPOT, TTFT = "availability", "time-per-output-token", "time-to-first-token"
SLO = labels.SLOTH_SLO

# A service that was quiet (a quarter of the present rate) reaches its burn windows sooner, as at the
# end of a night; theory is computed for that. Where the past is partly spent, it is so to the last percent.
QUIET = History(requests_per_second=1.0)
# Behind a long queue the canary's request is late as well.
QUEUE = (alerts.WAITING_REQUESTS_HIGH, alerts.LATENCY_BURN_FAST, alerts.CANARY_FAILING)

FLEET = (
    Row("healthy", Nothing(HEALTHY_SECONDS), quiet=True, ci=True),
    Row(
        "traffic-spike",
        Sim("traffic_spike", {"factor": 12}),
        fires=(
            Expected(alerts.WAITING_REQUESTS_HIGH),
            # The promise on whole answers may be the first to burn.
            Expected(
                alerts.LATENCY_BURN_FAST,
                {SLO: TTFT},
                events_per_second=24,
                joins=True,
                recovers_seconds=None,
                why_not_shown="so many are late that the pair of 6 h and 30 min burns too, and ends half an hour later",
            ),
            Expected(alerts.THROUGHPUT_LOW),
        ),
        may_fire=QUEUE,
        history=QUIET,
        gpus=1,
    ),
    Row(
        "slow-decode",
        Sim("slow_decode", {"factor": 4}),
        fires=(Expected(alerts.LATENCY_BURN_FAST, {SLO: TPOT}),),
        # Answers take longer, so that more of them are under way and some wait.
        may_fire=(alerts.WAITING_REQUESTS_HIGH,),
        history=QUIET,
        ci=True,
    ),
    Row(
        "slow-prefill",
        Sim("slow_prefill"),
        fires=(Expected(alerts.LATENCY_BURN_FAST, {SLO: TTFT}),),
        may_fire=(alerts.WAITING_REQUESTS_HIGH,),
        history=QUIET,
    ),
    Row(
        "slow-trickle",
        Sim("slow_decode", {"factor": 4}),
        fires=(
            Expected(alerts.LATENCY_BURN_SLOW, {SLO: TPOT}, recovers_seconds=None, why_not_shown=TOO_LONG),
        ),
        # The fault is total: the page follows the ticket when it is held long enough.
        may_fire=(alerts.LATENCY_BURN_FAST,),
        history=History(bad_ratios={TPOT: 0.0096}),
    ),
    Row(
        "kv-thrash",
        Sim("kv_thrash"),
        fires=(
            Expected(alerts.PREEMPTION_STORM, level=1.0),
            Expected(alerts.KV_CACHE_PRESSURE, level=0.99),
        ),
        may_fire=QUEUE,
        history=QUIET,
        requests_per_second=8,
    ),
    Row(
        "cache-cold",
        Sim("cache_cold"),
        fires=(Expected(alerts.PREFIX_CACHE_HIT_LOW, level=0.0, healthy=0.75),),
        silent=(alerts.WAITING_REQUESTS_HIGH, alerts.KV_CACHE_PRESSURE),
    ),
    Row(
        "errors",
        Sim("errors", {"share": 1.0}),
        fires=(Expected(alerts.REQUESTS_FAILING),),
        # The canary's request fails as well; and what RequestsFailing silenced burns on after it ended.
        may_fire=(alerts.CANARY_FAILING, alerts.AVAILABILITY_BURN_FAST),
        silent=(alerts.ADMISSION_REJECTIONS, alerts.CLIENTS_VANISHING),
        ci=True,
    ),
    Row(
        "errors-some",
        Sim("errors", {"share": 0.15}),
        fires=(Expected(alerts.AVAILABILITY_BURN_FAST, level=0.15),),
        # Five canary requests in a row may be among the 15 % that fail, once in 13,000 times; 30 s without one
        # that succeeded need three, once in 300.
        may_fire=(alerts.CANARY_FAILING,),
        silent=(alerts.REQUESTS_FAILING,),
        ci=True,
    ),
    Row(
        "errors-trickle",
        Sim("errors", {"share": 0.05}),
        fires=(
            Expected(
                alerts.AVAILABILITY_BURN_SLOW, level=0.05, recovers_seconds=None, why_not_shown=TOO_LONG
            ),
        ),
        silent=(alerts.REQUESTS_FAILING,),
        history=History(bad_ratios={AVAILABILITY: 0.00048}),
    ),
    Row(
        "budget-low",
        Sim("errors", {"share": 0.02}),
        fires=(
            Expected(
                alerts.ERROR_BUDGET_LOW,
                level=0.02,
                recovers_seconds=None,
                why_not_shown="a spent budget comes back over 30 days",
            ),
        ),
        slos=(AVAILABILITY,),
        history=History(bad_ratios={AVAILABILITY: 0.000448}, days=16),
    ),
    Row(
        "admission-reject",
        # Of ten that ask at the same instant seven may wait, and two or three are turned away, however quick
        # the engine is: a fifth, far from the half at which RequestsFailing would silence the signal.
        Sim("admission_reject", {"max_num_seqs": 16, "max_num_queued_reqs": 7, "burst": 10}),
        fires=(
            Expected(alerts.ADMISSION_REJECTIONS, level=0.1),
            Expected(alerts.AVAILABILITY_BURN_FAST, level=0.1),
        ),
        may_fire=QUEUE,
        requests_per_second=4,
    ),
    Row(
        "hang",
        # Stopped while idle, the gauges would say for ever that there is no work: then only the canary knows.
        Sim("hang", {"with_work": 1}),
        fires=(
            Expected(alerts.ENGINE_HUNG),
            Expected(alerts.SERVICE_DOWN, seen_as=alerts.ENGINE_HUNG),
        ),
        # ServiceDown and EngineHung silence the canary and the budgets only as long as they fire.
        may_fire=(alerts.CANARY_FAILING, alerts.AVAILABILITY_BURN_FAST, alerts.LATENCY_BURN_FAST),
        silent=(alerts.ENGINE_DOWN, alerts.ENGINE_ASLEEP, alerts.WAITING_REQUESTS_HIGH),
        ci=True,
    ),
    Row(
        "asleep",
        Sim("asleep"),
        fires=(Expected(alerts.ENGINE_ASLEEP),),
        # Requests wait for ever in a sleeping engine, which is a hang as well.
        may_fire=(
            alerts.ENGINE_HUNG,
            alerts.SERVICE_DOWN,
            alerts.CANARY_FAILING,
            alerts.AVAILABILITY_BURN_FAST,
        ),
        silent=(alerts.ENGINE_DOWN,),
    ),
    Row(
        "canary-only",
        Sim("errors", {"share": 1.0}),
        fires=(Expected(alerts.CANARY_FAILING),),
        silent=(alerts.REQUESTS_FAILING, alerts.AVAILABILITY_BURN_SLOW),
        requests_per_second=0,
        history=QUIET,
    ),
    Row(
        "down",
        Sim("down"),
        fires=(Expected(alerts.ENGINE_DOWN), Expected(alerts.SERVICE_DOWN)),
        # Once it serves again, nothing silences what the outage spent.
        may_fire=(alerts.AVAILABILITY_BURN_FAST, alerts.CANARY_FAILING),
        silent=(alerts.ENGINE_HUNG, alerts.TARGET_VANISHED, alerts.REQUESTS_FAILING),
        ci=True,
    ),
    Row(
        "one-of-two-down",
        Sim("down"),
        fires=(Expected(alerts.ENGINE_DOWN),),
        may_fire=(alerts.CANARY_FAILING,),
        silent=(alerts.SERVICE_DOWN, alerts.REQUESTS_FAILING, alerts.AVAILABILITY_BURN_FAST),
        engines=2,
        requests_per_second=2,
    ),
    Row(
        "restart",
        Sim("restart", {"down_seconds": 40}, mends_itself_seconds=40),
        fires=(
            Expected(alerts.ENGINE_DOWN),
            Expected(alerts.SERVICE_DOWN),
            Expected(alerts.PROBES_FAILING),
        ),
        may_fire=(alerts.AVAILABILITY_BURN_FAST, alerts.CANARY_FAILING),
        silent=(alerts.COUNTER_INCONSISTENT, alerts.REQUESTS_FAILING, alerts.ENGINE_HUNG),
    ),
    Row(
        "no-metrics",
        Sim("no_metrics"),
        fires=(Expected(alerts.ENGINE_METRICS_MISSING),),
        silent=(alerts.ENGINE_DOWN, alerts.SERVICE_DOWN),
    ),
    Row(
        "counter-sawtooth",
        Sim("counter_sawtooth"),
        fires=(Expected(alerts.COUNTER_INCONSISTENT),),
        silent=(alerts.REQUESTS_FAILING, alerts.AVAILABILITY_BURN_FAST, alerts.LATENCY_BURN_FAST),
    ),
    Row(
        "client-aborts",
        Sim("client_aborts", {"share": 0.4}),
        fires=(
            Expected(
                alerts.CLIENTS_VANISHING,
                level=0.4,
                recovers_seconds=None,
                why_not_shown="its window is 10 min: it ends after the run",
            ),
        ),
        silent=(alerts.REQUESTS_FAILING, alerts.AVAILABILITY_BURN_FAST, alerts.LATENCY_BURN_FAST),
    ),
    Row(
        "one-of-two-removed",
        RemoveTarget(),
        fires=(Expected(alerts.TARGET_VANISHED),),
        silent=(alerts.SERVICE_VANISHED, alerts.ENGINE_DOWN),
        engines=2,
        requests_per_second=2,
        ci=True,
    ),
    Row(
        "target-removed",
        RemoveTarget(),
        fires=(Expected(alerts.SERVICE_VANISHED),),
        silent=(alerts.ENGINE_DOWN, alerts.SERVICE_DOWN),
    ),
)

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
            # The lost canary of the row above is the same kind of page.
            Expected(alerts.EXPORTER_DOWN, {"job": labels.JOB_ENGINE}, joins=True),
            Expected(alerts.EXPORTER_DOWN, {"job": labels.JOB_ENGINE_EXPORTER}, joins=True),
        ),
        # The engine is unknown then, which is neither down nor gone.
        silent=(alerts.ENGINE_DOWN, alerts.SERVICE_DOWN, alerts.TARGET_VANISHED),
        stage="watchers",
        engines=0,
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
            # The one that comes back may tell once more of what has ended.
            Expected(alerts.ALERTS_NOT_SENT, recovers_seconds=RECOVERY_SECONDS + 120),
            Expected(alerts.ALERTMANAGER_DOWN),
            Expected(alerts.ALERTMANAGER_CLUSTER_DEGRADED),
        ),
        may_fire=(alerts.SCRAPES_FAILING,),
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
        # A restart that meets one of Prometheus' own sends is a send that failed.
        may_fire=(alerts.ALERTS_NOT_SENT,),
        silent=(alerts.ALERTMANAGER_DOWN,),
        stage="sentinel",
        engines=0,
    ),
    Row(
        "prometheus-killed",
        Kill("prometheus"),
        fires=(Expected(alerts.WATCHDOG, status="resolved"),),
        may_fire=(alerts.ALERTS_NOT_SENT,),
        stage="sentinel",
        engines=0,
        after=("alertmanager-restarted",),
    ),
)

ROWS = (*FLEET, *WATCHERS, *SENTINEL)

_NO_VECTORS = (
    "needs embeddings that drift, which no simulated engine makes; shown by the drift exporter's own run"
)
_NO_GPU = "needs an NVIDIA GPU that fails, throttles or fills up"
_NO_HOST = "needs engine-core and cgroup series of a host under such pressure, and a GPU beside them"
_TRACED = "needs a RAG service and its spans; `make trace-e2e` makes it fire on a running one"
_RAG = "needs a RAG service in that state, with its spans, which no simulated engine makes"
_COLLECTOR = "needs a collector in that state, which the matrix does not start"
NOT_IN_THE_MATRIX = {
    alerts.MIXED_BUCKETS: "needs engines of two versions; the simulated engine has the bounds of one",
    alerts.LATENCY_OFF_SCALE: "needs requests that last longer than the highest bucket bound, which is hours",
    alerts.RULE_EVALUATION_SLOW: "needs rules that take longer than their interval: that would starve the other rows",
    alerts.JOINT_CRITICAL: _NO_VECTORS,
    alerts.JOINT_WARN: "comes with late answers in several rows, but how soon depends on a baseline that live hours make",
    alerts.MODEL_SWAPPED: _NO_VECTORS,
    alerts.DRIFT_UNKNOWN: _NO_VECTORS,
    alerts.VECTORS_REJECTED: _NO_VECTORS,
    alerts.RETRIEVAL_POOR: _NO_VECTORS,
    alerts.GPU_LOST: _NO_GPU,
    alerts.GPU_UNREADABLE: _NO_GPU,
    alerts.GPU_XID_HARDWARE: _NO_GPU,
    alerts.GPU_XID_APPLICATION: _NO_GPU,
    alerts.GPU_ECC_UNCORRECTED: _NO_GPU,
    alerts.GPU_ROW_REMAP_FAILED: _NO_GPU,
    alerts.GPU_ROW_REMAP_PENDING: _NO_GPU,
    alerts.GPU_THERMAL_THROTTLED: _NO_GPU,
    alerts.GPU_POWER_BRAKED: _NO_GPU,
    alerts.GPU_POWER_CAPPED: _NO_GPU,
    alerts.GPU_MEMORY_NEARLY_FULL: _NO_GPU,
    alerts.ENGINE_CPU_BOUND: _NO_HOST,
    alerts.GPU_WAITS_FOR_CPU: _NO_HOST,
    alerts.TENANT_CPU_THROTTLED: _NO_HOST,
    alerts.TENANT_MEMORY_PRESSURE: _NO_HOST,
    alerts.TENANT_OUT_OF_MEMORY: _NO_HOST,
    alerts.NOISY_NEIGHBOUR: _NO_HOST,
    alerts.ENGINE_STARVED: _NO_HOST,
    alerts.LATENCY_MEMORY_BOUND: _NO_HOST,
    alerts.LATENCY_THROTTLED: _NO_HOST,
    alerts.PREEMPTIONS_MEMORY_FULL: _NO_HOST,
    alerts.RAG_STAGE_SLOW: _TRACED,
    alerts.RAG_SERVICE_DOWN: _RAG,
    alerts.RAG_REQUESTS_FAILING: _RAG,
    alerts.RAG_REQUEST_SLOW: _RAG,
    alerts.RAG_STAGE_FAILING: _RAG,
    alerts.RAG_SPANS_MISSING: _RAG,
    alerts.RAG_POOL_EXHAUSTED: _RAG,
    alerts.RAG_KEEPALIVE_RESETS: _RAG,
    alerts.RAG_CACHE_HIT_COLLAPSED: _RAG,
    alerts.RAG_CONTEXT_TRUNCATED: _RAG,
    alerts.RAG_VERSION_WORSE: _RAG,
    alerts.NETWORK_SLOW: _RAG,
    alerts.COLLECTOR_DOWN: _COLLECTOR,
    alerts.SPANS_REFUSED: _COLLECTOR,
    alerts.SPANS_LOST: _COLLECTOR,
    alerts.SPAN_QUEUE_FILLING: _COLLECTOR,
}
"""Alert -> why no row can bring it on one machine in 15 minutes; promtool tests alone show these."""
