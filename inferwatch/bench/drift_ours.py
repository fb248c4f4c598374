"""The drift exporter's judge over the benchmark's windows -> scores, CPU time, memory; one JSON line a task."""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import beta
from threadpoolctl import threadpool_limits

from exporters.drift.fit import fit
from exporters.drift.judge import judge
from exporters.drift.reservoir import Reservoir
from slo import spec
from slo.signals import Drift

ALL = "inferwatch"
NOT_A_SPACE = 1e6  # the ratio that a `swapped` state stands for: certain that something is wrong
RESERVOIR_VECTORS = 50_000
SPLITS, WINDOWS_A_SPLIT = 15, 7


def main(argv: list[str]) -> int:
    """`FOLDER`: reads FOLDER/*.npz as the peers do. The score of all detectors together is the worst ratio."""
    shipped = spec.load().drift
    with threadpool_limits(1):
        for path in sorted(Path(argv[0]).glob("*.npz")):
            with np.load(path) as archive:
                windows = {name: archive[name] for name in archive.files}
            reference = windows.pop("reference")
            size = windows["healthy"].shape[1]
            drift = shipped.model_copy(
                update={"min_samples": min(shipped.min_samples, size), "sample_size": size}
            )
            begun = time.process_time()
            profile = fit(reference, path.stem, "", drift)
            fitted = time.process_time() - begun
            scores: dict[str, dict[str, list[float]]] = {}
            begun, judged = time.process_time(), 0
            for label, some in windows.items():
                for window in some:
                    verdict = judge(profile, window, drift)
                    judged += 1
                    found = {
                        ALL: verdict.ratio if verdict.ratio is not None else NOT_A_SPACE,
                        **verdict.scores,
                    }
                    for name, value in found.items():
                        scores.setdefault(name, {}).setdefault(label, []).append(value)
            seconds = (time.process_time() - begun) / judged
            line = {
                "task": path.stem,
                "scores": scores,
                "seconds": {ALL: seconds},
                "fit_seconds": fitted,
                "ingest_vectors_per_second": _ingest(windows["healthy"]),
                "alarms": _alarms(np.load(path.with_suffix(".npy")), len(reference), size, drift),
                "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, 1),
            }
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()
    return 0


def _alarms(vectors: np.ndarray, count: int, size: int, drift: Drift) -> dict[str, float | int]:
    """
    How often healthy windows alarm at the thresholds that ship: new splits of all healthy vectors into a reference
    of *count* and windows of *size*, none of which shares a vector with another one of its split.
    """
    windows = alarms = 0
    for split in range(SPLITS):
        order = np.random.default_rng((split, count)).permutation(len(vectors))
        profile = fit(vectors[order[:count]], "m", "", drift, seed=split)
        held_out = vectors[order[count:]]
        for begin in range(0, min(len(held_out) - size, size * (WINDOWS_A_SPLIT - 1)) + 1, size):
            windows += 1
            alarms += judge(profile, held_out[begin : begin + size], drift).state != "no"
    bound = float(beta.ppf(0.95, alarms + 1, windows - alarms))
    return {
        "stated": drift.false_alarm_rate,
        "references": SPLITS,
        "windows": windows,
        "alarms": alarms,
        "ratio": round(alarms / windows, 4),
        "at_most_at_95_percent": round(bound, 4),
    }


def _ingest(windows: np.ndarray) -> float:
    """Vectors per CPU second into a window, checked and sampled, in batches of 32."""
    from exporters.drift.vectors import check

    shipped = spec.load().drift
    rows = windows.reshape(-1, windows.shape[-1])
    reservoir = Reservoir(rows.shape[1], shipped.sample_size, shipped.window, shipped.slices, seed=1)
    begun, taken = time.process_time(), 0
    while taken < RESERVOIR_VECTORS:
        at = taken % (len(rows) - 32)
        reservoir.add(check(rows[at : at + 32]).vectors, taken / 100)
        taken += 32
    return round(taken / (time.process_time() - begun))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
