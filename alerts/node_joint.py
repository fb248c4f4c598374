"""GPU × engine: what the engine feels, with what its GPU did at the same time -> why.

Latency rises over the mean of the hour before, by instance; how far it may rise is the first band of
the joint table. Every alert needs both halves: one that is unknown is no evidence.
"""

from alerts.promql import promql, window
from alerts.rule import Alert, Record
from alerts.texts import links, percent, span
from slo.names import alerts, engine
from slo.names import node_records as records
from slo.names.records import INSTANCE_INCONSISTENT
from slo.spec import Spec

SLIS = {
    "time_to_first_token": engine.TIME_TO_FIRST_TOKEN_SECONDS,
    "inter_token_latency": engine.INTER_TOKEN_LATENCY_SECONDS,
}
_WHO = "{{ $labels.service }} / {{ $labels.model }}, engine {{ $labels.instance }}"
_BY = "service, model, instance"


def latency_records(spec: Spec, sli: str) -> tuple[Record, ...]:
    """Return each instance's latency by one of SLIS; no sample without traffic."""
    family, span_ = SLIS[sli], window(spec.node.joint.window)
    expr = f"""
        histogram_quantile({spec.joint.latency_quantile:g}, sum by ({_BY}, le) (rate({family}_bucket{span_})))
        and on ({_BY}) sum by ({_BY}) (rate({family}_count{span_})) > 0
        unless on (instance) {INSTANCE_INCONSISTENT}
    """
    return (Record(records.INSTANCE_LATENCY, expr, {"sli": sli}),)


def rise_records(spec: Spec) -> tuple[Record, ...]:
    """Return the rise of each instance's latencies; no sample without a past."""
    span_, past = window(spec.node.joint.window), window(spec.node.joint.baseline_window)
    before = f"avg_over_time({records.INSTANCE_LATENCY}{past} offset {span_[1:-1]})"
    return (Record(records.INSTANCE_LATENCY_RISE, f"{records.INSTANCE_LATENCY} / ({before} > 0) - 1"),)


def _joint_alert(spec: Spec, name: str, expr: str, summary: str, description: str) -> Alert:
    return Alert(
        name,
        promql(expr),
        "warning",
        summary,
        description,
        for_seconds=spec.node.joint.for_,
        links=links(spec, name, "gpu"),
    )


def _slower(spec: Spec) -> str:
    """The worst rise of an instance's latency, where it left the steady band."""
    steady = spec.joint.latency_bands[0].up_to_ratio
    return f"max by ({_BY}) ({records.INSTANCE_LATENCY_RISE}) > {steady:g}"


def _steady(spec: Spec) -> str:
    return percent(spec.joint.latency_bands[0].up_to_ratio or 0)


def _of_engine(gpu: str) -> str:
    """A GPU expression as the largest over an engine instance's GPUs; label instance is the engine's."""
    return promql(f"""
        max by (instance) (
        {records.ENGINE_GPU} * on (uuid) group_left () max by (uuid) ({gpu})
        )
    """)


def joint_alerts(spec: Spec) -> tuple[Alert, ...]:
    """Return the alerts that need both halves."""
    return (_starved(spec), _memory_bound(spec), _throttled(spec), _preempted(spec))


def _starved(spec: Spec) -> Alert:
    joint = spec.node.joint
    over = window(joint.window)
    waiting = f"sum by ({_BY}) ({engine.REQUESTS_WAITING})"
    growth = f"sum by ({_BY}) (deriv({engine.REQUESTS_WAITING}{over})) * {joint.window}"
    active = _of_engine(f"avg_over_time({records.GPU_ACTIVE}{over})")
    return _joint_alert(
        spec,
        alerts.ENGINE_STARVED,
        f"""
        ({waiting} >= {joint.min_requests:g})
        and ({growth} >= {joint.queue_growth_requests:g})
        and on (instance) ({active} < {joint.gpu_idle_below_ratio:g})
        """,
        f"{_WHO}: {{{{ $value | humanize }}}} requests wait and the queue grows while the GPU idles",
        f"Now: {{{{ $value | humanize }}}} requests wait. Wanted: a queue that grows by less than "
        f"{joint.queue_growth_requests:g} in {span(joint.window)}, or a GPU of the engine over "
        f"{percent(joint.gpu_idle_below_ratio)} active. It is starved by CPU, memory or I/O, not by load.",
    )


def _memory_bound(spec: Spec) -> Alert:
    over, saturated = window(spec.node.joint.window), spec.node.bound.saturated_from_ratio
    dram = f"avg_over_time({records.GPU_DRAM}{over})"
    tensor = f"avg_over_time({records.GPU_TENSOR}{over})"
    bound = _of_engine(f"({dram} >= {saturated:g}) > on (uuid) group_left () max by (uuid) ({tensor})")
    return _joint_alert(
        spec,
        alerts.LATENCY_MEMORY_BOUND,
        f"{_slower(spec)}\nand on (instance) {bound}",
        f"{_WHO}: latency is up by {{{{ $value | humanizePercentage }}}}, bound by GPU memory bandwidth",
        f"Now: {{{{ $value | humanizePercentage }}}} over the hour before. Wanted: at most {_steady(spec)}, or a bandwidth "
        f"used under {percent(saturated)} over {span(spec.node.joint.window)} or less than the tensor cores. Each step reads as "
        "much as the chip can deliver: more load makes it slower, not fuller.",
    )


def _throttled(spec: Spec) -> Alert:
    joint = spec.node.joint
    held = f"max without (cause) (avg_over_time({records.GPU_HELD}{window(joint.window)}))"
    return _joint_alert(
        spec,
        alerts.LATENCY_THROTTLED,
        f"{_slower(spec)}\nand on (instance) {_of_engine(held)} > {joint.throttled_from_ratio:g}",
        f"{_WHO}: latency is up by {{{{ $value | humanizePercentage }}}} while the GPU's clocks are held back",
        f"Now: {{{{ $value | humanizePercentage }}}} over the hour before. Wanted: at most {_steady(spec)}, or clocks that "
        f"heat, power supply and power limit hold for at most {percent(joint.throttled_from_ratio)} of "
        f"{span(joint.window)}.",
    )


def _preempted(spec: Spec) -> Alert:
    joint, limit = spec.node.joint, spec.signal("preemptions").threshold
    over = window(joint.window)
    rate = f"sum by ({_BY}) (rate({engine.PREEMPTIONS_TOTAL}{over}))"
    full = _of_engine(f"min_over_time({records.GPU_MEMORY_SETTLED}{over})")
    return _joint_alert(
        spec,
        alerts.PREEMPTIONS_MEMORY_FULL,
        f"({rate} > {limit:g})\nand on (instance) {full} > {joint.memory_high_from_ratio:g}",
        f"{_WHO}: {{{{ $value | humanize }}}} preemptions a second, and the GPU's memory is full",
        f"Now: {{{{ $value | humanize }}}} a second over {span(joint.window)}. Wanted: at most {limit:g}, or memory settled "
        f"under {percent(joint.memory_high_from_ratio)}. The KV cache cannot be made larger on this "
        "card. Fewer or shorter sequences, a smaller model or more GPUs are what is left.",
    )
