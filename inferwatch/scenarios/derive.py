"""slo.yaml and the rows of a stage -> a spec with one service a row, its rules, and the past of each."""

import math
from collections.abc import Sequence

from inferwatch.scenarios.row import Row
from inferwatch.stack.backfill import ServiceHistory
from inferwatch.stack.services import SIM_MODEL
from slo.names import labels
from slo.objectives import Service
from slo.spec import Spec

DAY_HOURS = 24.0


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


def rule_files(spec: Spec, most_seconds: float = math.inf) -> dict[str, str]:
    """
    Return file name -> text of the rules that a stage runs, from the generator of the shipped ones.

    *most_seconds*: only of groups that are evaluated so often at least.

    Left out are those for engines scraped without the exporter: no row has any, and they cost as much
    as a service.
    """
    from alerts.registry import all_groups
    from alerts.rule import rule_file

    groups = (group for group in all_groups(spec) if group.interval_seconds <= most_seconds)
    return {f"{group.name}.yaml": rule_file((group,)) for group in groups}


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
