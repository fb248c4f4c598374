"""Rows of simulated engines: what is broken in one, what must be delivered then, and what must not."""

from inferwatch.scenarios.faults import Nothing, RemoveTarget, Sim
from inferwatch.scenarios.row import Expected, History, Row
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
        "direct-slow",
        Sim("slow_decode", {"factor": 4}),
        fires=(Expected(alerts.LATENCY_BURN_FAST, {SLO: TPOT}),),
        may_fire=(alerts.WAITING_REQUESTS_HIGH,),
        history=QUIET,
        direct=True,
    ),
    Row(
        "slow-prefill",
        # 32 words or more that no cache holds take 16 steps of 45 ms: all are over the promised 0.5 s, as theory assumes.
        Sim("slow_prefill", {"chunk_tokens": 2}),
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
        fires=(Expected(alerts.PREEMPTION_STORM, level=1.0),),
        may_fire=(*QUEUE, alerts.KV_CACHE_PRESSURE),
        history=QUIET,
        requests_per_second=8,
    ),
    Row(
        "kv-full",
        # The same fault kept up until the pressure is told, which is held for five minutes: in one row the storm's
        # end would wait for it.
        Sim("kv_thrash"),
        fires=(Expected(alerts.KV_CACHE_PRESSURE, level=0.99),),
        may_fire=(*QUEUE, alerts.PREEMPTION_STORM),
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
        # What RequestsFailing silenced burns on after it ended.
        may_fire=(alerts.AVAILABILITY_BURN_FAST,),
        # The canary's request fails as well, and backs off: neither is told beside RequestsFailing, or after it.
        silent=(alerts.CANARY_FAILING, alerts.ADMISSION_REJECTIONS, alerts.CLIENTS_VANISHING),
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
        # ServiceDown and EngineHung silence the budgets only as long as they fire.
        may_fire=(alerts.AVAILABILITY_BURN_FAST, alerts.LATENCY_BURN_FAST),
        silent=(
            alerts.ENGINE_DOWN,
            alerts.ENGINE_ASLEEP,
            alerts.CANARY_FAILING,
            alerts.WAITING_REQUESTS_HIGH,
        ),
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
        fires=(Expected(alerts.ENGINE_DOWN, refused=True), Expected(alerts.SERVICE_DOWN, refused=True)),
        # Once it serves again, nothing silences what the outage spent.
        may_fire=(alerts.AVAILABILITY_BURN_FAST,),
        silent=(
            alerts.ENGINE_HUNG,
            alerts.TARGET_VANISHED,
            alerts.REQUESTS_FAILING,
            alerts.CANARY_FAILING,
        ),
        ci=True,
    ),
    Row(
        "silent",
        Sim("silent"),
        fires=(Expected(alerts.ENGINE_DOWN), Expected(alerts.SERVICE_DOWN)),
        # As after `down`.
        may_fire=(alerts.AVAILABILITY_BURN_FAST,),
        silent=(
            alerts.ENGINE_HUNG,
            alerts.TARGET_VANISHED,
            alerts.REQUESTS_FAILING,
            alerts.CANARY_FAILING,
        ),
    ),
    Row(
        "direct-down",
        Sim("down"),
        fires=(Expected(alerts.ENGINE_DOWN), Expected(alerts.SERVICE_DOWN)),
        # Once it serves again, nothing silences what the outage spent.
        may_fire=(alerts.AVAILABILITY_BURN_FAST,),
        silent=(alerts.ENGINE_HUNG, alerts.ENGINE_METRICS_MISSING, alerts.TARGET_VANISHED),
        direct=True,
    ),
    Row(
        "one-of-two-down",
        Sim("down"),
        fires=(Expected(alerts.ENGINE_DOWN, refused=True),),
        silent=(
            alerts.SERVICE_DOWN,
            alerts.REQUESTS_FAILING,
            alerts.AVAILABILITY_BURN_FAST,
            alerts.CANARY_FAILING,
        ),
        engines=2,
        requests_per_second=2,
    ),
    Row(
        "restart",
        Sim("restart", {"down_seconds": 40}, mends_itself_seconds=40),
        fires=(
            Expected(alerts.ENGINE_DOWN, refused=True),
            Expected(alerts.SERVICE_DOWN, refused=True),
            Expected(alerts.PROBES_FAILING),
        ),
        may_fire=(alerts.AVAILABILITY_BURN_FAST,),
        silent=(
            alerts.COUNTER_INCONSISTENT,
            alerts.REQUESTS_FAILING,
            alerts.ENGINE_HUNG,
            alerts.CANARY_FAILING,
        ),
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
