"""Rows of GPUs, hosts and what engines feel of them: recorded things that change, seen by the real node agent."""

from inferwatch.scenarios.faults import Nothing, Recorded, SlowRule
from inferwatch.scenarios.row import RECOVERY_SECONDS, Expected, Row
from inferwatch.scenarios.shown import Card, Core, Page, Shown, Tenant, uuid
from slo.names import alerts

RECORDED = (
    "GPU and host of these rows are recorded, not real: NVML of an H200 whose answers are edited at the fault, and "
    "/proc and cgroup files whose counters move as under it. The node agent, rules and notifications are real; "
    "engines are simulated or a recorded vLLM page."
)
POWER_CAP, THERMAL, POWER_BRAKE = 0x4, 0x40, 0x80
IN_WINDOW = "what happened stays in its window, which ends after the run"
TOO_LATE = "two windows of 5 min in turn must be left: that ends after the run"
WINDOW_AND_GROUP = RECOVERY_SECONDS + 60.0
"""A rate over 5 min must forget the fault to its last sample."""
OLD_BOUNDS = ("1.0", "2.5", "5.0", "10.0", "15.0", "20.0", "30.0", "40.0", "50.0", "60.0")
"""Of whole requests' latency in vLLM 0.6."""
BASELINE_LEAD_SECONDS = 240.0
"""A rise is told from the latency of 5 min before: healthy minutes must be there."""

_OTHERS_OF_A_CARD = (alerts.GPU_LOST, alerts.GPU_THERMAL_THROTTLED, alerts.GPU_POWER_BRAKED)
_WELL = Shown(card=Card())


def _card(name: str, alert: str, card: Card, why_not_shown: str = "", *, ci: bool = False) -> Row:
    """A card that is well, and what it must bring when it shows *card*."""
    recovers = None if why_not_shown else RECOVERY_SECONDS
    expected = Expected(alert, {"uuid": uuid(name)}, recovers_seconds=recovers, why_not_shown=why_not_shown)
    silent = tuple(other for other in _OTHERS_OF_A_CARD if other != alert)
    fault = Recorded(Shown(card=card))
    return Row(name, fault, (expected,), silent=silent, stage="nodes", engines=0, shows=_WELL, ci=ci)


CARDS = (
    Row("gpu-well", Nothing(480.0), quiet=True, stage="nodes", engines=0, shows=_WELL),
    Row(
        "gpu-lost",
        Recorded(Shown(card=Card(twin=True, lost=True))),
        # Its agent has the row's name; until the card is back everything else of the node goes on.
        (Expected(alerts.GPU_LOST, {"instance": "gpu-lost"}),),
        silent=(alerts.GPU_UNREADABLE, alerts.NODE_AGENT_DOWN),
        stage="nodes",
        engines=0,
        shows=Shown(card=Card(twin=True), node="gpu-lost"),
        ci=True,
    ),
    Row(
        "gpu-unreadable",
        # After a reboot into another driver nobody knows how many cards there should be: nothing is lost.
        Recorded(Shown(card=Card(driver_mismatch=True)), restarts=True),
        (Expected(alerts.GPU_UNREADABLE, {"instance": "gpu-unreadable", "state": "driver_mismatch"}),),
        silent=(alerts.GPU_LOST, alerts.NODE_AGENT_DOWN),
        stage="nodes",
        engines=0,
        shows=Shown(card=Card(), node="gpu-unreadable"),
    ),
    _card("gpu-xid-hardware", alerts.GPU_XID_HARDWARE, Card(xid=79), IN_WINDOW, ci=True),
    _card("gpu-xid-application", alerts.GPU_XID_APPLICATION, Card(xid=31), IN_WINDOW),
    # A reset, which is the mend, clears the count.
    _card("gpu-ecc", alerts.GPU_ECC_UNCORRECTED, Card(uncorrected=1)),
    _card("gpu-remap-failed", alerts.GPU_ROW_REMAP_FAILED, Card(remap_failed=True)),
    _card("gpu-remap-pending", alerts.GPU_ROW_REMAP_PENDING, Card(remap_pending=True), ci=True),
    _card("gpu-hot", alerts.GPU_THERMAL_THROTTLED, Card("memory", clock_events=THERMAL)),
    _card("gpu-braked", alerts.GPU_POWER_BRAKED, Card("memory", clock_events=POWER_BRAKE)),
    # Normal on a full GPU, and therefore told only after half an hour: that hold is shorter here (`derive.SHORT_HOLDS`).
    _card("gpu-capped", alerts.GPU_POWER_CAPPED, Card("memory", clock_events=POWER_CAP)),
    _card(
        "gpu-full",
        alerts.GPU_MEMORY_NEARLY_FULL,
        Card(memory_used=0.985),
        "it takes 5 min to settle and is held for 5 min: it ends after the run",
    ),
)

_ON_GPU = Shown(card=Card(active=0.3), core=Core(busy=0.6))

HOSTS = (
    Row(
        "engine-cpu-bound",
        Recorded(Shown(core=Core(busy=0.98, waited=0.02), card=Card(active=0.05))),
        (Expected(alerts.ENGINE_CPU_BOUND, {"instance": "engine-cpu-bound"}),),
        # It silences GpuWaitsForCpu, which the same starved GPU would bring.
        silent=(alerts.GPU_WAITS_FOR_CPU, alerts.NOISY_NEIGHBOUR),
        stage="nodes",
        engines=0,
        shows=_ON_GPU,
    ),
    Row(
        "gpu-waits",
        # Under the 82 % at which the CPU itself is the alert.
        Recorded(Shown(card=Card(active=0.02))),
        (Expected(alerts.GPU_WAITS_FOR_CPU, recovers_seconds=None, why_not_shown=TOO_LATE),),
        silent=(alerts.ENGINE_CPU_BOUND, alerts.NOISY_NEIGHBOUR),
        stage="nodes",
        shows=Shown(card=Card(active=0.3), core=Core(busy=0.75), page=Page()),
    ),
    Row(
        "noisy-neighbour",
        Recorded(Shown(core=Core(busy=0.4, waited=0.55, others=0.95))),
        (
            Expected(
                alerts.NOISY_NEIGHBOUR,
                {"instance": "noisy-neighbour"},
                recovers_seconds=None,
                why_not_shown=TOO_LATE,
            ),
        ),
        silent=(alerts.ENGINE_CPU_BOUND, alerts.GPU_WAITS_FOR_CPU),
        stage="nodes",
        engines=0,
        shows=Shown(core=Core()),
    ),
    *(
        Row(
            name,
            Recorded(Shown(tenant=tenant)),
            (Expected(alert, {"tenant": name}, recovers_seconds=recovers, why_not_shown=why),),
            silent=tuple(
                one for one in (alerts.TENANT_OUT_OF_MEMORY, alerts.TENANT_CPU_THROTTLED) if one != alert
            ),
            stage="nodes",
            engines=0,
            shows=Shown(tenant=Tenant()),
        )
        for name, alert, tenant, recovers, why in (
            ("tenant-throttled", alerts.TENANT_CPU_THROTTLED, Tenant(throttled=0.9), WINDOW_AND_GROUP, ""),
            ("tenant-memory", alerts.TENANT_MEMORY_PRESSURE, Tenant(stalled=0.9), WINDOW_AND_GROUP, ""),
            ("tenant-killed", alerts.TENANT_OUT_OF_MEMORY, Tenant(oom_kills=1), None, IN_WINDOW),
        )
    ),
)

# A slow engine is late, which its own promises may tell first.
_SLOW = (alerts.LATENCY_BURN_FAST, alerts.WAITING_REQUESTS_HIGH, alerts.THROUGHPUT_LOW)

BOTH = (
    Row(
        "engine-starved",
        # Steps take fifty times as long, so that more come than are answered; the GPU has nothing to do.
        Recorded(Shown(card=Card(active=0.02)), "slow_decode", {"factor": 50}),
        (Expected(alerts.ENGINE_STARVED, {"service": "engine-starved"}),),
        may_fire=(*_SLOW, alerts.REQUESTS_FAILING),
        silent=(alerts.LATENCY_MEMORY_BOUND, alerts.LATENCY_THROTTLED),
        stage="nodes",
        shows=Shown(card=Card(active=0.3)),
    ),
    Row(
        "latency-memory-bound",
        Recorded(Shown(card=Card("memory")), "slow_decode", {"factor": 4}),
        (Expected(alerts.LATENCY_MEMORY_BOUND, {"service": "latency-memory-bound"}),),
        may_fire=_SLOW,
        silent=(alerts.LATENCY_THROTTLED, alerts.ENGINE_STARVED),
        stage="nodes",
        shows=Shown(card=Card(active=0.4)),
        lead_seconds=BASELINE_LEAD_SECONDS,
    ),
    Row(
        "latency-throttled",
        Recorded(Shown(card=Card(active=0.4, clock_events=THERMAL)), "slow_decode", {"factor": 4}),
        (Expected(alerts.LATENCY_THROTTLED, {"service": "latency-throttled"}),),
        may_fire=(*_SLOW, alerts.GPU_THERMAL_THROTTLED),
        silent=(alerts.LATENCY_MEMORY_BOUND, alerts.ENGINE_STARVED),
        stage="nodes",
        shows=Shown(card=Card(active=0.4)),
        lead_seconds=BASELINE_LEAD_SECONDS,
    ),
    Row(
        "preemptions-full",
        # The card is as full before, by vLLM's own design.
        Recorded(Shown(), "kv_thrash"),
        (Expected(alerts.PREEMPTIONS_MEMORY_FULL, {"service": "preemptions-full"}, level=1.0),),
        # What it silences while it fires may outlast it.
        may_fire=(*_SLOW, alerts.KV_CACHE_PRESSURE, alerts.PREEMPTION_STORM),
        silent=(alerts.GPU_MEMORY_NEARLY_FULL,),
        stage="nodes",
        requests_per_second=8,
        shows=Shown(card=Card(active=0.4, memory_used=0.9)),
    ),
)

PAGES = (
    Row(
        "mixed-buckets",
        # One of two engines is rolled back to a version with other bounds.
        Recorded(Shown(page=Page(bounds=OLD_BOUNDS))),
        (Expected(alerts.MIXED_BUCKETS),),
        silent=(alerts.LATENCY_OFF_SCALE, alerts.COUNTER_INCONSISTENT),
        stage="nodes",
        engines=2,
        requests_per_second=2,
        shows=Shown(page=Page()),
    ),
    Row(
        "latency-off-scale",
        # Two in a hundred last for hours: too few to burn the budget of any promise quickly.
        Recorded(Shown(page=Page(off_scale=0.02))),
        (Expected(alerts.LATENCY_OFF_SCALE, level=0.02, recovers_seconds=WINDOW_AND_GROUP),),
        silent=(alerts.MIXED_BUCKETS, alerts.LATENCY_BURN_FAST),
        stage="nodes",
        shows=Shown(page=Page()),
    ),
    Row(
        "rule-slow",
        SlowRule(),
        (Expected(alerts.RULE_EVALUATION_SLOW, recovers_seconds=WINDOW_AND_GROUP),),
        silent=(alerts.RULE_EVALUATION_FAILING,),
        stage="nodes",
        engines=0,
    ),
)

NODES = (*CARDS, *HOSTS, *BOTH, *PAGES)
