"""Recorded GPU, engine-core and tenant series -> the node's alerts."""

from alerts.node_joint import SLIS, joint_alerts, latency_records, rise_records
from alerts.node_records import core_records, engines_own, gpu_records, tenant_records
from alerts.promql import promql, window
from alerts.rule import Alert, Group, Severity
from alerts.texts import percent, span
from slo.names import alerts, dashboards, engine, labels, node
from slo.names import node_records as records
from slo.node import Threshold
from slo.spec import Spec

NODE = {labels.SERVICE: "node"}
CARD = "GPU {{ $labels.gpu }} ({{ $labels.gpu_model }}, {{ $labels.uuid }}) of {{ $labels.instance }}"
CORE = "engine {{ $labels.instance }} (rank {{ $labels.dp_rank }}) on {{ $labels.node }}"
TENANT = "{{ $labels.tenant }} on {{ $labels.node }}"
SHARE = "{{ $value | humanizePercentage }}"


def node_alert(
    spec: Spec, name: str, expr: str, severity: Severity, summary: str, description: str, for_seconds: int = 0
) -> Alert:
    """An alert of the node, linked to its runbook and the GPU page."""
    return Alert(
        name,
        promql(expr),
        severity,
        summary,
        description,
        for_seconds=for_seconds,
        labels=NODE,
        links={
            "runbook_url": f"{spec.links.runbook_base}/{name}.md",
            "dashboard_url": f"{spec.links.dashboard_base}/d/{dashboards.GPU_UID}",
        },
    )


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
            "They fell off the bus, need a reset, or are no longer listed. What ran on them is gone. "
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
            "The agent runs and serves the host's series; of GPUs nothing is known, which is neither idle nor well.",
            limits.gpu_unreadable_for,
        ),
        node_alert(
            spec,
            alerts.NODE_AGENT_DOWN,
            f'up{{job="{labels.JOB_NODE}"}} == 0',
            "ticket",
            "The node agent at {{ $labels.instance }} cannot be scraped",
            "Alerts about the node's GPUs, CPUs and cgroups are silent until it is back.",
            limits.agent_down_for,
        ),
    )


def fault_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return what hardware reports about itself."""
    limits = spec.node.alerts
    within = span(limits.xid_window)
    return (
        node_alert(
            spec,
            alerts.GPU_XID_HARDWARE,
            f'{records.GPU_XIDS}{{class="hardware"}} > 0',
            "ticket",
            f"{CARD}: the driver reports a hardware fault (XID)",
            f"At least one event within {within}: memory, link, bus, firmware or power. "
            "The runbook says what each code asks for.",
        ),
        node_alert(
            spec,
            alerts.GPU_XID_APPLICATION,
            f'{records.GPU_XIDS}{{class="application"}} > 0',
            "warning",
            f"{CARD}: a program made the GPU fault (XID)",
            f"At least one event within {within}. The engine on it most likely crashed or will; the card is well.",
        ),
        node_alert(
            spec,
            alerts.GPU_ECC_UNCORRECTED,
            f"{records.GPU_ECC} > 0",
            "ticket",
            f"{CARD}: uncorrectable memory errors",
            f"New within {span(limits.ecc_window)}. Results computed on it may be wrong until it is reset.",
        ),
        node_alert(
            spec,
            alerts.GPU_ROW_REMAP_FAILED,
            f"{records.GPU_REMAP_FAILED} == 1",
            "ticket",
            f"{CARD}: a broken memory row could not be replaced",
            "The spare rows are used up or the repair failed: the card must be exchanged.",
        ),
        node_alert(
            spec,
            alerts.GPU_ROW_REMAP_PENDING,
            f"{records.GPU_REMAP_PENDING} == 1",
            "ticket",
            f"{CARD}: a memory row waits to be replaced",
            "A GPU reset does it; until then the row stays in use.",
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
            f"For {SHARE} of the last {span(limit.window)}; told from {percent(limit.above_ratio)}.",
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
        f"Settled above {percent(full.above_ratio)} for {span(full.window)}: the next allocation may fail. "
        "What the driver reserves is not counted.",
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
            f"Over {span(binding.window)} its main thread filled over {percent(binding.threshold)} of a core and either "
            f"waited for a CPU for over {percent(delay.above_ratio)} of the time or kept its GPU under "
            f"{percent(joint.gpu_idle_below_ratio)}. {binding.why}",
            binding.for_,
        ),
        node_alert(
            spec,
            alerts.GPU_WAITS_FOR_CPU,
            f"({over(records.GPU_WAITS, waits)}) and on (instance) {running}",
            "warning",
            f"{CORE}: the GPU stands still for {SHARE} of the time while the CPU works",
            f"At least so much of the last {span(waits.window)}, with requests running.",
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
            f"It waited for a CPU for {SHARE} of the last {span(delay.window)} while others took over "
            f"{percent(noisy.above_ratio)} of the CPUs it is bound to, or (unbound) while the host was as short of CPU.",
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
            f"Over {span(limits.cpu_throttled.window)}; its threads stand still until the next period.",
            limits.cpu_throttled.for_,
        ),
        node_alert(
            spec,
            alerts.TENANT_MEMORY_PRESSURE,
            f"{records.TENANT_MEMORY_STALLED} > {limits.memory_pressure.above_ratio:g}",
            "warning",
            f"{TENANT}: waits for memory {SHARE} of the time",
            f"Some task stood still so much of the last {span(limits.memory_pressure.window)} until memory was reclaimed.",
            limits.memory_pressure.for_,
        ),
        node_alert(
            spec,
            alerts.TENANT_OUT_OF_MEMORY,
            f"max by (tenant, cgroup, node) (increase({killed}{events})) > 0",
            "ticket",
            f"{TENANT}: the kernel killed a process for memory",
            f"Its cgroup hit memory.max within the last {span(limits.memory_events.window)}; what was killed is in the kernel log.",
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
