"""slo.yaml and the rows of a stage -> a spec with one service a row, its rules, and the past of each."""

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, TypeVar

from inferwatch.scenarios.row import Row
from inferwatch.stack.backfill import ServiceHistory
from inferwatch.stack.services import SIM_MODEL
from slo.base import Strict
from slo.names import alerts, labels
from slo.objectives import Service
from slo.spec import Spec

DAY_HOURS = 24.0
SHORT_HOLD_SECONDS = 60
SHORT_HOLDS: Mapping[str, tuple[str, ...]] = {
    alerts.DRIFT_UNKNOWN: ("drift", "unknown"),
    alerts.GPU_POWER_CAPPED: ("node", "alerts", "power_cap"),
}
"""Alert that is held for longer than the matrix lasts -> where slo.yaml says for how long. A stage whose rows must bring
it holds it for SHORT_HOLD_SECONDS; nothing else of the spec is changed, and the result says so."""


Part = TypeVar("Part", bound=Strict)


def staged(spec: Spec, served: Sequence[Row], rows: Sequence[Row]) -> Spec:
    """Return the spec of a stage of *rows*: *served* as its services, where there are any, and holds that fit in."""
    made = derived(spec, served) if served else spec
    return reduce(_with_hold, (SHORT_HOLDS[alert] for alert in short_holds(rows)), made)


def short_holds(rows: Sequence[Row]) -> list[str]:
    """The alerts of these rows whose hold is shortened."""
    return sorted({one.alert for row in rows for one in row.fires} & set(SHORT_HOLDS))


def hold_notes(spec: Spec, rows: Sequence[Row]) -> dict[str, str]:
    """Return alert -> what people are told of its hold; *spec* is the one that ships."""
    from alerts.texts import span

    return {
        alert: f"held {span(SHORT_HOLD_SECONDS)} in place of {span(_shipped_seconds(spec, SHORT_HOLDS[alert]))}"
        for alert in short_holds(rows)
    }


def _shipped_seconds(spec: Spec, path: tuple[str, ...]) -> float:
    held: Any = spec
    for name in path:
        held = getattr(held, name)
    return float(held.for_)


def _with_hold(part: Part, path: tuple[str, ...]) -> Part:
    """The part of a spec with the hold at *path* shortened."""
    if not path:
        return part.model_copy(update={"for_": SHORT_HOLD_SECONDS})
    return part.model_copy(update={path[0]: _with_hold(getattr(part, path[0]), path[1:])})


def derived(spec: Spec, rows: Sequence[Row]) -> Spec:
    """Return *spec* with the promises of its first service made once for each row."""
    base = spec.services[0]
    return spec.model_copy(update={"services": tuple(_service(base, row) for row in rows)})


def _service(base: Service, row: Row) -> Service:
    floor = base.throughput_floor
    if row.gpus:
        model = next(iter(floor.tokens_per_second_per_gpu))
        floor = floor.model_copy(update={"gpus": row.gpus, "gpu_model": model})
    return base.model_copy(
        update={
            "id": row.name,
            "selector": {labels.SERVICE: row.name},
            "slos": tuple(slo for slo in base.slos if not row.slos or slo.id in row.slos),
            "throughput_floor": floor,
        }
    )


def rule_files(spec: Spec, most_seconds: float = math.inf, *, direct: bool = False) -> dict[str, str]:
    """
    Return file name -> text of the rules that a stage runs, from the generator of the shipped ones.

    *most_seconds*: only of groups that are evaluated so often at least.
    *direct*: also those for engines scraped without the exporter, which cost as much as a service.
    """
    from alerts.direct import direct_groups
    from alerts.registry import all_groups
    from alerts.rule import rule_file

    groups = (*(direct_groups(spec) if direct else ()), *all_groups(spec))
    kept = (group for group in groups if group.interval_seconds <= most_seconds)
    return {f"{group.name}.yaml": rule_file((group,)) for group in kept}


def histories(rows: Sequence[Row]) -> list[ServiceHistory]:
    """Return the past of each row's service."""
    return [
        ServiceHistory(
            row.name,
            SIM_MODEL,
            row.past_rate,
            row.history.bad_ratios,
            None if row.history.days is None else row.history.days * DAY_HOURS,
        )
        for row in rows
    ]
