"""Recorded GPU, engine-core and tenant series -> the node's alerts."""

from alerts.node_alert import CARD, CORE, SHARE, TENANT, node_alert
from alerts.node_joint import SLIS, joint_alerts, latency_records, rise_records
from alerts.node_records import core_records, engines_own, gpu_records, tenant_records
from alerts.promql import window
from alerts.rule import Alert, Group
from alerts.texts import percent, span
from slo.names import alerts, engine, labels, node
from slo.names import node_records as records
from slo.node import Threshold
from slo.spec import Spec


def over(record: str, limit: Threshold) -> str:
    """The record's mean over the limit's window, where it is over the limit."""
    return f"avg_over_time({record}{window(limit.window)}) > {limit.above_ratio:g}"


def presence_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what says that GPUs, or the sight of them, are gone."""
    limits = spec.node.alerts
    broken = "|".join(
        (node.STATE_DRIVER_NOT_LOADED, node.STATE_DRIVER_MISMATCH, node.STATE_NO_PERMISSION, node.STATE_ERROR)
    )
    absent = "|".join((node.STATE_NO_LIBRARY, node.STATE_NO_BINDINGS, node.STATE_NO_DEVICES))
    return (
        node_alert(
            spec,
            alerts.GPU_LOST,
            f"{records.GPUS_MISSING} > 0",
            "page",
            "{{ $value }} GPU(s) of {{ $labels.instance }} do not answer",
            f"Now: {{{{ $value }}}} missing for over {span(limits.gpu_lost_for)}, of those that were known. Promised: 0. They "
            "fell off the bus, need a reset, or are no longer listed. What ran on them is gone. "
            f"{node.GPU_UP} names those that were known.",
            limits.gpu_lost_for,
        ),
        node_alert(
            spec,
            alerts.GPU_UNREADABLE,
            f"""
            {node.NVML_STATE}{{state=~"{broken}"}} == 1
            or ({node.NVML_STATE}{{state=~"{absent}"}} == 1 and on (instance) {node.GPUS_EXPECTED} > 0)
            """,
            "ticket",
            "No GPU of {{ $labels.instance }} can be read: {{ $labels.state }}",
            f"Now: {{{{ $labels.state }}}} for over {span(limits.gpu_unreadable_for)}. Wanted: every GPU read every "
            f"{span(spec.intervals.scrape_seconds)}. The agent runs and serves the host's series; of GPUs nothing is "
            "known, which is neither idle nor well.",
            limits.gpu_unreadable_for,
        ),
        node_alert(
            spec,
            alerts.NODE_AGENT_DOWN,
            f'up{{job="{labels.JOB_NODE}"}} == 0',
            "ticket",
            "The node agent at {{ $labels.instance }} cannot be scraped",
            f"Now: no answer for over {span(limits.agent_down_for)}. Promised: one to every scrape, every "
            f"{span(spec.intervals.scrape_seconds)}. Alerts about the node's GPUs, CPUs and cgroups are silent until it is "
            "back.",
            limits.agent_down_for,
        ),
    )


def fault_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what hardware reports about itself."""
    limits = spec.node.alerts
    within, events = span(limits.xid_window), "{{ $value | humanize }} events"
    return (
        node_alert(
            spec,
            alerts.GPU_XID_HARDWARE,
            f'{records.GPU_XIDS}{{class="hardware"}} > 0',
            "ticket",
            f"{CARD}: the driver reports a hardware fault (XID)",
            f"Now: {events} within {within}. Promised: 0. It is memory, link, bus, firmware or power. "
            "The runbook says what each code asks for.",
        ),
        node_alert(
            spec,
            alerts.GPU_XID_APPLICATION,
            f'{records.GPU_XIDS}{{class="application"}} > 0',
            "warning",
            f"{CARD}: a program made the GPU fault (XID)",
            f"Now: {events} within {within}. Promised: 0. The engine on it most likely crashed or will; the card is well.",
        ),
        node_alert(
            spec,
            alerts.GPU_ECC_UNCORRECTED,
            f"{records.GPU_ECC} > 0",
            "ticket",
            f"{CARD}: uncorrectable memory errors",
            f"Now: {{{{ $value | humanize }}}} new ones within {span(limits.ecc_window)}. Promised: 0. "
            "Results computed on it may be wrong until it is reset.",
        ),
        node_alert(
            spec,
            alerts.GPU_ROW_REMAP_FAILED,
            f"{records.GPU_REMAP_FAILED} == 1",
            "ticket",
            f"{CARD}: a broken memory row could not be replaced",
            "Now: its repair state is `failed`. Promised: 0 rows that cannot be replaced. The spare rows are used up or the "
            "repair failed: the card must be exchanged.",
        ),
        node_alert(
            spec,
            alerts.GPU_ROW_REMAP_PENDING,
            f"{records.GPU_REMAP_PENDING} == 1",
            "ticket",
            f"{CARD}: a memory row waits to be replaced",
            "Now: its repair state is `pending`. Wanted: 0 rows that wait. A GPU reset does it; until then the row stays in "
            "use.",
        ),
    )


def throttle_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what holds a GPU back: heat, power, memory."""
    limits = spec.node.alerts
    held = {
        alerts.GPU_THERMAL_THROTTLED: ("thermal", limits.thermal_throttle, "too hot"),
        alerts.GPU_POWER_BRAKED: ("power_brake", limits.power_brake, "braked by its power supply"),
        alerts.GPU_POWER_CAPPED: ("power_cap", limits.power_cap, "at its power limit"),
    }
    throttled = tuple(
        node_alert(
            spec,
            name,
            over(f'{records.GPU_HELD}{{cause="{cause}"}}', limit),
            "warning",
            f"{CARD}: clocks held back, it is {why}",
            f"Now: for {SHARE} of the last {span(limit.window)}. Wanted: at most {percent(limit.above_ratio)}.",
            limit.for_,
        )
        for name, (cause, limit, why) in held.items()
    )
    full = limits.memory_nearly_full
    memory = node_alert(
        spec,
        alerts.GPU_MEMORY_NEARLY_FULL,
        f"min_over_time({records.GPU_MEMORY_SETTLED}{window(full.window)}) > {full.above_ratio:g}",
        "warning",
        f"{CARD}: {SHARE} of its memory is taken",
        f"Now: at least {SHARE}, settled for {span(full.window)}. Wanted: at most {percent(full.above_ratio)}. The next "
        "allocation may fail. What the driver reserves is not counted.",
        full.for_,
    )
    return (*throttled, memory)


def core_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what starves an engine core. Binding alone never warns: an engine may spin in good health."""
    limits, binding, joint = spec.node.alerts, spec.signal("cpu-binding"), spec.node.joint
    delay, waits, noisy = limits.runqueue_delay, limits.gpu_waits_for_cpu, limits.noisy_neighbour
    key = "on (instance, dp_rank, node)"
    running = f"sum by (instance) ({engine.REQUESTS_RUNNING}) >= {joint.min_requests:g}"
    return (
        node_alert(
            spec,
            alerts.ENGINE_CPU_BOUND,
            f"""
            {records.CORE_BINDING} > {binding.threshold:g}
            and {key} (
              {records.CORE_RUNQUEUE} > {delay.above_ratio:g}
              or {records.CORE_GPU_ACTIVE} < {joint.gpu_idle_below_ratio:g}
            )
            """,
            "warning",
            f"{CORE}: its CPU is {SHARE} busy, and it waits or its GPU idles",
            f"Now: its main thread filled {SHARE} of a core over {span(binding.window)}. Wanted: at most "
            f"{percent(binding.threshold)}, or less than {percent(delay.above_ratio)} of the time waiting for a CPU and a GPU "
            f"over {percent(joint.gpu_idle_below_ratio)} active. {binding.why}",
            binding.for_,
        ),
        node_alert(
            spec,
            alerts.GPU_WAITS_FOR_CPU,
            f"({over(records.GPU_WAITS, waits)}) and on (instance) {running}",
            "warning",
            f"{CORE}: the GPU stands still for {SHARE} of the time while the CPU works",
            f"Now: at least {SHARE} of the last {span(waits.window)}, with requests running. Wanted: at most "
            f"{percent(waits.above_ratio)}.",
            waits.for_,
        ),
        node_alert(
            spec,
            alerts.NOISY_NEIGHBOUR,
            f"""
            ({over(records.CORE_RUNQUEUE, delay)})
            and {key} ({over(records.CORE_OTHERS, noisy)} or {_host_is_pressed(spec)})
            """,
            "warning",
            f"{CORE}: somebody else uses its CPUs",
            f"Now: it waited for a CPU for {SHARE} of the last {span(delay.window)}. Wanted: at most "
            f"{percent(delay.above_ratio)}, or others on at most {percent(noisy.above_ratio)} of the CPUs it is bound to "
            "(unbound: a host no shorter of CPU than that).",
            noisy.for_,
        ),
    )


def _host_is_pressed(spec: Spec) -> str:
    """Unbound engine cores of a host whose tasks wait for a CPU for so long a share of time."""
    noisy = spec.node.alerts.noisy_neighbour
    pressure = f'{node.HOST_PRESSURE_SECONDS_TOTAL}{{resource="cpu",share="some"}}'
    pressed = f"max by (node) (rate({pressure}{window(noisy.window)}) * on (instance) group_left (node) {node.NODE_INFO})"
    unbound = f"max by (instance, dp_rank, node) ({engines_own(node.ENGINE_CORE_BOUND_CPUS)} == 0)"
    return f"({unbound} + on (node) group_left () {pressed} > {noisy.above_ratio:g})"


def tenant_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what a tenant's own limits do to it."""
    limits = spec.node.alerts
    events = window(limits.memory_events.window)
    killed = f'{node.CGROUP_MEMORY_EVENTS_TOTAL}{{event="oom_kill"}}'
    return (
        node_alert(
            spec,
            alerts.TENANT_CPU_THROTTLED,
            f"{records.TENANT_THROTTLED} > {limits.cpu_throttled.above_ratio:g}",
            "warning",
            f"{TENANT}: out of CPU quota in {SHARE} of its periods",
            f"Now: {SHARE} over {span(limits.cpu_throttled.window)}. Wanted: at most "
            f"{percent(limits.cpu_throttled.above_ratio)}. Its threads stand still until the next period.",
            limits.cpu_throttled.for_,
        ),
        node_alert(
            spec,
            alerts.TENANT_MEMORY_PRESSURE,
            f"{records.TENANT_MEMORY_STALLED} > {limits.memory_pressure.above_ratio:g}",
            "warning",
            f"{TENANT}: waits for memory {SHARE} of the time",
            f"Now: some task stood still for {SHARE} of the last {span(limits.memory_pressure.window)} until memory was "
            f"reclaimed. Wanted: at most {percent(limits.memory_pressure.above_ratio)}.",
            limits.memory_pressure.for_,
        ),
        node_alert(
            spec,
            alerts.TENANT_OUT_OF_MEMORY,
            f"max by (tenant, cgroup, node) (increase({killed}{events})) > 0",
            "ticket",
            f"{TENANT}: the kernel killed a process for memory",
            f"Now: {{{{ $value | humanize }}}} killed within {span(limits.memory_events.window)}, as its cgroup hit memory.max. "
            "Promised: 0. What was killed is in the kernel log.",
            limits.memory_events.for_,
        ),
    )


def node_groups(spec: Spec) -> tuple[Group, ...]:
    """
    Return the node's groups: what is judged at every evaluation, and what only needs minutes.

    Latencies read every bucket of every engine: a group each, so that none takes a second for a thousand engines.
    """
    intervals = spec.intervals
    return (
        Group(
            "node-base",
            intervals.evaluation_seconds,
            (*gpu_records(spec), *presence_alerts(spec), *fault_alerts(spec)),
        ),
        *(
            Group(f"node-latency-{sli}", intervals.slow_evaluation_seconds, latency_records(spec, sli))
            for sli in SLIS
        ),
        Group(
            "node-slow",
            intervals.slow_evaluation_seconds,
            (
                *core_records(spec),
                *tenant_records(spec),
                *rise_records(spec),
                *throttle_alerts(spec),
                *core_alerts(spec),
                *tenant_alerts(spec),
                *joint_alerts(spec),
            ),
        ),
    )
