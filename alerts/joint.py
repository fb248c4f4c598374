"""Latency against its baseline, drift beside it -> the live cell of slo.yaml's joint table, as series.

Order matters: BAD and FROZEN read the level that the evaluation before recorded. So the baseline stands still
while the table says warn or critical, and the band is left downwards only under its border less the hysteresis.
"""

from alerts.promql import promql, window
from alerts.rule import Record
from alerts.scope import Scope
from slo.names import drift as names
from slo.names import records
from slo.signals import JointLatency

LEVELS = {"ok": 0, "info": 1, "warn": 2, "critical": 3}
BY = "(sli, model)"
FULL = 0.95  # share of the samples of max_freeze that must be there


def joint_records(scope: Scope) -> tuple[Record, ...]:
    """Return everything that the table is made of, in the order of evaluation.

    Raises ValueError when slo.yaml records no such quantile.
    """
    joint = scope.spec.joint
    if joint.latency_quantile not in scope.spec.latency.quantiles:
        raise ValueError(
            f"slo.yaml: joint.latency_quantile {joint.latency_quantile:g}: not in latency.quantiles; add it there"
        )
    return (
        *(_latency(scope, one) for one in joint.latencies),
        *_freeze(scope),
        Record(
            names.NORMAL,
            f"{scope.recorded(names.LATENCY)}\nunless on {BY} ({scope.recorded(names.FROZEN)} == 1)",
            scope.labels,
        ),
        Record(names.BASELINE, _baseline(scope), scope.labels),
        Record(
            names.RISE,
            f"{scope.recorded(names.LATENCY)}\n/ on {BY} group_right () {scope.recorded(names.BASELINE)}",
            scope.labels,
        ),
        Record(names.BAND, _band(scope), scope.labels),
        *_drift(scope),
        *_cells(scope),
    )


def _latency(scope: Scope, one: JointLatency) -> Record:
    """The P95, where there were enough requests to have one."""
    joint, latency = scope.spec.joint, scope.spec.latency
    over, quantile = window(latency.window), f"{joint.latency_quantile:g}"
    if one.sli == names.SLI_RETRIEVAL:
        rates = f"sum by (le) (rate({scope.raw(names.RETRIEVAL_SECONDS + '_bucket')}{over}))"
        count = f"sum(increase({scope.raw(names.RETRIEVAL_SECONDS + '_count')}{over}))"
        expr = f"histogram_quantile({quantile}, {rates})\nand on () ({count} >= {joint.min_requests})"
    else:
        sli = f'sli="{one.sli}"'
        every = scope.recorded(records.LATENCY_BUCKET, sli, 'le="+Inf"')
        chosen = scope.recorded(records.LATENCY_QUANTILE, sli, f'quantile="{quantile}"')
        step = scope.spec.intervals.slow_evaluation_seconds
        expr = (
            f"max by (model) ({chosen})\n"
            f"and on (model) (sum by (model) (sum_over_time({every}{over})) * {step} >= {joint.min_requests})"
        )
    return Record(names.LATENCY, expr, scope.labels | {"sli": one.sli})


def _freeze(scope: Scope) -> tuple[Record, Record]:
    joint = scope.spec.joint
    bad, over = scope.recorded(names.BAD), window(joint.max_freeze)
    fewest = FULL * joint.max_freeze / scope.spec.intervals.slow_evaluation_seconds
    return (
        Record(
            names.BAD,
            f"max by {BY} ({scope.recorded(names.LEVEL)}) >= bool {LEVELS['warn']}",
            scope.labels,
        ),
        Record(
            names.FROZEN,
            promql(f"""
                {bad}
                unless on {BY} (min_over_time({bad}{over}) == 1 and count_over_time({bad}{over}) >= {fewest:g})
                or on {BY} {bad} * 0
            """),
            scope.labels,
        ),
    )


def _baseline(scope: Scope) -> str:
    """Frozen, else a day before, else the trailing hour, else what it was, else the objective."""
    spec, joint = scope.spec, scope.spec.joint
    own, normal = scope.recorded(names.BASELINE), scope.recorded(names.NORMAL)
    over = window(joint.baseline_span)
    day = f"{over} offset {86_400 - joint.baseline_span // 2}s"
    hour = f"{over} offset {spec.latency.window}s"
    fewest = joint.baseline_min_history * joint.baseline_span / spec.intervals.slow_evaluation_seconds
    measured = "\n".join(
        f"or on {BY} label_replace(quantile_over_time(0.5, {normal}{at})\n"
        f'and on {BY} (count_over_time({normal}{at}) >= {fewest:g}), "baseline", "{label}", "", "")'
        for at, label in ((day, names.BASELINE_DAY), (hour, names.BASELINE_HOUR))
    )
    held = scope.recorded(names.BASELINE, f'baseline!="{names.BASELINE_OBJECTIVE}"')
    objectives = "\n".join(f"or on {BY} {one}" for one in _objectives(scope))
    return (
        f"({own} and on {BY} ({scope.recorded(names.FROZEN)} == 1))\n{measured}\n"
        f"or on {BY} ({held} and on {BY} {scope.recorded(names.LATENCY)})\n{objectives}"
    )


def _objectives(scope: Scope) -> list[str]:
    """What is promised of each latency, as a series beside it."""
    promised = {slo.sli: slo.threshold_seconds for slo in scope.service.slos if slo.threshold_seconds}
    found = []
    for one in scope.spec.joint.latencies:
        seconds = one.objective_seconds or promised.get(one.sli)
        if seconds is not None:
            latency = scope.recorded(names.LATENCY, f'sli="{one.sli}"')
            found.append(
                f'label_replace({latency} * 0 + {seconds:g}, "baseline", "{names.BASELINE_OBJECTIVE}", "", "")'
            )
    return found


def _band(scope: Scope) -> str:
    """How many borders the rise is over; one that was crossed still counts within the hysteresis."""
    joint = scope.spec.joint
    rise, before = (
        f"max by {BY} ({scope.recorded(names.RISE)})",
        f"max by {BY} ({scope.recorded(names.BAND)})",
    )
    borders = [band.up_to_ratio for band in joint.latency_bands if band.up_to_ratio is not None]
    raw = " + ".join(f"({rise} > bool {1 + border:.10g})" for border in borders)
    held = "\n+ ".join(
        f"({rise} > bool {1 + border - joint.hysteresis_ratio:.10g}) * ({before} >= bool {n})"
        for n, border in enumerate(borders, start=1)
    )
    return promql(f"(({raw}) >= ({held}))\nor ({held})\nor ({raw})")


def _drift(scope: Scope) -> tuple[Record, ...]:
    """The service's one state: the worst of its streams; unknown where none says anything that is fresh."""
    every = scope.spec.drift.every
    last = f"time() - {scope.raw(names.LAST_EVALUATION)} < {8 * every}"

    def any_in(*states: str) -> str:
        matcher = f'state=~"{"|".join(states)}"'
        return f"(max({scope.raw(names.STATE, matcher)} and ignoring (state) ({last})) == 1)"

    wanted = {
        "yes": any_in("yes"),
        "swapped": f"{any_in('swapped')}\nunless on () {any_in('yes')}",
        "no": f"{any_in('no')}\nunless on () {any_in('yes', 'swapped')}",
        "unknown": f"vector(1)\nunless on () {any_in('yes', 'swapped', 'no')}",
    }
    return tuple(
        Record(names.SERVICE_DRIFT, expr, scope.labels | {names.LABEL_DRIFT: state})
        for state, expr in wanted.items()
    )


def _cells(scope: Scope) -> tuple[Record, ...]:
    """One rule a cell; at any time one of them has a sample."""
    joint = scope.spec.joint
    return tuple(
        Record(
            names.LEVEL,
            f"({scope.recorded(names.BAND)} == {n}) * 0 + {LEVELS[level]}\n"
            f"and on () ({scope.recorded(names.SERVICE_DRIFT, _is(drift))} == 1)",
            scope.labels | {names.LABEL_BAND: band.id, names.LABEL_DRIFT: drift, names.LABEL_LEVEL: level},
        )
        for n, band in enumerate(joint.latency_bands)
        for drift, level in joint.cells[band.id].items()
    )


def _is(drift: str) -> str:
    return f'drift="{drift}"'
