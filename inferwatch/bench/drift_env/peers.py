"""Evidently's and alibi-detect's detectors over the benchmark's windows -> scores and CPU time, as JSON lines.

Run by the Python of the benchmark's environment, with the vLLM environment's torch behind it. Scores are the
statistic that each decides by. Evidently's bootstrap and alibi-detect's permutations only turn it into a decision at a
known rate of false alarms: they are left out while scores are computed, and are part of the time of a decision.
"""

import json
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Detector = Callable[[np.ndarray], float]
TIMED_WINDOWS = 3
PERMUTATIONS = 100  # alibi-detect's default


def evidently(reference: np.ndarray, *, bootstrap: bool) -> dict[str, Detector]:
    """The four methods of its embeddings drift metric, with their defaults; `ratio` has no bootstrap."""
    import pandas as pd
    from evidently.legacy.metrics.data_drift import embedding_drift_methods as methods

    columns = [f"c{n}" for n in range(reference.shape[1])]
    frame = pd.DataFrame(reference, columns=columns)

    def of(method: Any) -> Detector:
        # A copy each time: the model method adds a column to what it is given.
        return lambda window: float(method(pd.DataFrame(window, columns=columns), frame.copy())[0])

    return {
        "evidently model": of(methods.model(bootstrap=bootstrap)),
        "evidently distance": of(methods.distance(bootstrap=bootstrap)),
        "evidently mmd": of(methods.mmd(bootstrap=bootstrap)),
        "evidently ratio": of(methods.ratio()),
    }


def alibi(reference: np.ndarray, permutations: int) -> dict[str, Detector]:
    """KS by feature, MMD, least-squares density difference, and a classifier; defaults, PyTorch on the CPU."""
    import torch
    from alibi_detect.cd import ClassifierDrift, KSDrift, LSDDDrift, MMDDrift
    from sklearn.linear_model import LogisticRegression

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = LogisticRegression(max_iter=200)
    ks = KSDrift(reference, p_val=0.05)
    mmd = MMDDrift(reference, backend="pytorch", p_val=0.05, n_permutations=permutations)
    lsdd = LSDDDrift(reference, backend="pytorch", p_val=0.05, n_permutations=permutations)
    classifier = ClassifierDrift(reference, model, backend="sklearn", preds_type="probs", n_folds=2, seed=0)

    def distance(detector: Any) -> Detector:
        return lambda window: float(detector.predict(window)["data"]["distance"])

    return {
        "alibi KS": lambda window: -float(np.min(ks.predict(window)["data"]["p_val"])),
        "alibi MMD": distance(mmd),
        "alibi LSDD": distance(lsdd),
        "alibi classifier": distance(classifier),
    }


def _seconds(detector: Detector, windows: np.ndarray) -> float:
    """CPU time a window."""
    begun = time.process_time()
    for window in windows:
        detector(window)
    return (time.process_time() - begun) / len(windows)


def main(argv: list[str]) -> int:
    """`FOLDER TORCH_SITE_PACKAGES`: reads FOLDER/*.npz, one a task; prints a line a task."""
    warnings.simplefilter("ignore")
    sys.path.append(argv[1])
    for path in sorted(Path(argv[0]).glob("*.npz")):
        with np.load(path) as archive:
            windows = {name: archive[name] for name in archive.files}
        reference = windows.pop("reference")
        bare = {**evidently(reference, bootstrap=False), **alibi(reference, 1)}
        scores = {
            name: {label: [detector(one) for one in some] for label, some in windows.items()}
            for name, detector in bare.items()
        }
        deciding = {**evidently(reference, bootstrap=True), **alibi(reference, PERMUTATIONS)}
        timed = windows["healthy"][:TIMED_WINDOWS]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        line = {
            "task": path.stem,
            "scores": scores,
            "score_seconds": {name: _seconds(one, timed) for name, one in bare.items()},
            "seconds": {name: _seconds(one, timed) for name, one in deciding.items()},
            "peak_mb": round(peak, 1),
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
