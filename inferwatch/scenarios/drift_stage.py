"""Rows -> drift exporters of the stage `drift`, one a row, the reference that they hold vectors against, and the sender."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from inferwatch.scenarios.drift_shape import MODEL, Sent
from inferwatch.scenarios.rag_stage import post
from inferwatch.scenarios.row import Row
from inferwatch.scenarios.stage import Stage
from inferwatch.stack import config, services
from inferwatch.stack.blocks import ConstantSeries
from inferwatch.stack.processes import Service
from inferwatch.stack.services import SIM_MODEL
from inferwatch.stack.settings import HOST, Settings
from slo.names import drift as names
from slo.names import labels
from slo.spec import Spec

FIRST_PORT = 200
"""Counted from the stage's base port: over all ports of a stack and of its engines."""
SENDER = "drift-sender"
REFERENCE_VECTORS = 2600
"""Enough that windows of all sizes up to the shipped sample are calibrated."""
REFERENCE_SEED = 7
CALIBRATION_ROUNDS = 120
READY_SECONDS = 180.0


def exporter_name(row: str) -> str:
    """Name of the exporter of a row's service."""
    return f"exporter-drift-{row}"


def ports(rows: Sequence[Row], own: Settings) -> dict[str, int]:
    """Port of the sender, and of /metrics and ingest of each exporter."""
    wanted = [SENDER]
    for row in rows:
        wanted += [exporter_name(row.name), _ingest(row.name)]
    return {name: own.base_port + FIRST_PORT + number for number, name in enumerate(wanted)}


def _ingest(row: str) -> str:
    return f"{exporter_name(row)}-ingest"


def reference_file(own: Settings) -> Path:
    """The one profile that all exporters of the stage load."""
    return own.run_dir / "drift" / "reference.npz"


def fit_reference(spec: Spec, own: Settings) -> None:
    """Fit the profile of the synthetic model: a day of healthy vectors, drawn from the same topics as the rows' own."""
    from threadpoolctl import threadpool_limits

    from exporters.drift.fit import fit
    from exporters.drift.profile import save
    from inferwatch.scenarios.drift_vectors import Space

    healthy = Space().vectors(np.random.default_rng(REFERENCE_SEED), REFERENCE_VECTORS)
    path = reference_file(own)
    path.parent.mkdir(parents=True, exist_ok=True)
    with threadpool_limits(1):  # small matrices: more threads take twice the CPU time
        save(fit(healthy, MODEL, "", spec.drift, rounds=CALIBRATION_ROUNDS), path)


def drift_services(rows: Sequence[Row], own: Settings) -> list[Service]:
    """One exporter a row, their configurations written, and the sender."""
    where = ports(rows, own)
    for row in rows:
        write_config(row, rows, own, has_reference=True)
    sender = services.python("inferwatch.scenarios.drift_sender", str(where[SENDER]))
    return [
        *(_exporter(row.name, own, where) for row in rows),
        Service(SENDER, sender, f"http://{HOST}:{where[SENDER]}", "/sent"),
    ]


def _exporter(row: str, own: Settings, where: dict[str, int]) -> Service:
    listen = f"{HOST}:{where[exporter_name(row)]}"
    return Service(
        exporter_name(row),
        services.python(
            *("exporters", "drift", "--listen", listen),
            *("--config", str(config_file(row, own)), "--spec", str(own.spec_path)),
        ),
        f"http://{listen}",
        "/-/ready",
        ready_timeout_seconds=READY_SECONDS,
        extra_ports=(where[_ingest(row)],),
    )


def config_file(row: str, own: Settings) -> Path:
    """The drift.yml of a row's exporter."""
    return own.config_dir / f"drift-{row}.yml"


def write_config(row: Row, rows: Sequence[Row], own: Settings, *, has_reference: bool) -> None:
    """Write it with the reference, or with none; read at the exporter's start."""
    content = {
        "references": [{"file": str(reference_file(own)), "model": MODEL}] if has_reference else [],
        "ingest": {"listen": f"{HOST}:{ports(rows, own)[_ingest(row.name)]}"},
    }
    config.write_yaml(config_file(row.name, own), content)


def write_targets(rows: Sequence[Row], own: Settings) -> None:
    """Each exporter under the name of its row."""
    where = ports(rows, own)
    groups = [
        {"targets": [f"{HOST}:{where[exporter_name(row.name)]}"], "labels": {labels.SERVICE: row.name}}
        for row in rows
    ]
    config.write_json(own.drift_file, groups)


def past(spec: Spec, rows: Sequence[Row], now: int) -> list[ConstantSeries]:
    """
    The P95 that whole requests are said to have had, by the record that baselines are made of.

    So far back that the trailing hour, which ends a window ago, is full of it.
    """
    start = now - spec.joint.baseline_span - 2 * spec.latency.window
    return [
        ConstantSeries(
            names.NORMAL,
            {labels.SERVICE: row.name, "sli": "request_duration", labels.MODEL: SIM_MODEL},
            row.latency_before_seconds,
            start,
            now,
            spec.intervals.slow_evaluation_seconds,
        )
        for row in rows
        if row.latency_before_seconds
    ]


def begin(stage: Stage) -> None:
    """Every service sends as before any fault."""
    for row in stage.rows:
        if row.sent is not None:
            send(stage, row, row.sent)


def send(stage: Stage, row: Row, sent: Sent) -> None:
    """From now on the row's service sends this; StackError when the sender does not take it."""
    port = stage.services[exporter_name(row.name)].extra_ports[0]
    post(stage, SENDER, "/sent", {row.name: {"url": f"http://{HOST}:{port}", **asdict(sent)}})
