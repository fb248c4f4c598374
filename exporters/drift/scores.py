"""Reference and window, summed up -> one number a detector: 0 alike, larger the more they differ.

A new detector is a function and one line in DETECTORS. Each says what it catches; what a number means is
settled by calibration against the reference itself (exporters/drift/calibrate.py).
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from exporters.drift.features import Basis
from exporters.drift.summary import Half, Summary
from exporters.drift.vectors import Floats

SHRINKAGE = 0.1
NEIGHBOURS = "neighbours"
EVIDENCE = "evidence"
PCA_RATIO = "pca_ratio_change"

Score = Callable[[Basis, Summary, Summary], float]


def psi(reference: np.ndarray, current: np.ndarray) -> np.ndarray:
    """
    Population stability index of counts by bin, along the last dimension.

    Half a count is added to every bin on both sides, so that an empty bin is finite and treated alike on either
    side: [50 30 20 0] against [45 30 20 5] gives 0.123.
    """
    p = (reference + 0.5) / (reference + 0.5).sum(axis=-1, keepdims=True)
    q = (current + 0.5) / (current + 0.5).sum(axis=-1, keepdims=True)
    index: np.ndarray = ((q - p) * np.log(q / p)).sum(axis=-1)
    return index


def _mmd(_: Basis, reference: Summary, window: Summary) -> float:
    """Maximum mean discrepancy, squared, by random Fourier features: any change of shape or place."""
    gap = reference.random - window.random
    return float(2 * gap @ gap / len(gap))


def _location(_: Basis, reference: Summary, window: Summary) -> float:
    """Squared distance of the means in standard deviations, over all axes alike: a mean shift."""
    gap = reference.axes - window.axes
    return float(gap @ gap)


def _centroid(basis: Basis, reference: Summary, window: Summary) -> float:
    """Squared distance of the means as they lie, over the spread: a shift along the numbers that spread most."""
    gap = (reference.own - window.own) * basis.spread
    return float(gap @ gap) / float(basis.spread @ basis.spread)


def _coordinates(_: Basis, reference: Summary, window: Summary) -> float:
    """
    Change of mean and spread of the numbers one by one, each in its own standard deviations.

    Models have numbers that hardly move; noise and rotations show there first, and the main axes never see it.
    """
    gap, change = reference.own - window.own, reference.own_logs - window.own_logs
    return float(gap @ gap + change @ change / 2) / len(gap)


def _psi(_: Basis, reference: Summary, window: Summary) -> float:
    """Mean PSI over the first axes, the remainder and the length: one column that changes shape."""
    return float(psi(reference.bins, window.bins).mean())


def _within(_: Basis, reference: Summary, window: Summary) -> float:
    """
    The largest shift of any one axis, the remainder or the length, in standard deviations around the nearest centre.

    What moves along one axis is diluted in every sum over them, and the mix of clusters is no noise here.
    """
    return float(np.abs(reference.within - window.within).max())


def _novelty(_: Basis, reference: Summary, window: Summary) -> float:
    """How much newer the window's vectors are than the reference's are to each other: a few of a kind never seen."""
    return max(window.novel - reference.novel, 0.0)


def _covariance(_: Basis, reference: Summary, window: Summary) -> float:
    """Squared difference of the covariances of the main axes: a rotation, noise, lost or new spread."""
    gap = reference.second - window.second
    return float((gap * gap).sum())


def _classifier(_: Basis, reference: Summary, window: Summary) -> float:
    """
    How well a linear classifier (ridge regression) tells window from reference on vectors it never saw.

    Area under the curve less a half, mean of two folds: new clusters, and shifts over many axes at once. Solved
    from second moments, since the reference's are always the same; scikit-learn's would read it at every window.
    """
    areas = []
    for train in (0, 1):
        weights = _ridge(reference.halves[train], window.halves[train])
        test = (reference.halves[1 - train].inputs, window.halves[1 - train].inputs)
        areas.append(_area(*(inputs @ weights for inputs in test)))
    return max(float(np.mean(areas)) - 0.5, 0.0)


def _ridge(reference: Half, window: Half) -> Floats:
    """Weights that tell window (1) from reference (0), with an intercept that nobody needs."""
    counts = len(reference.inputs), len(window.inputs)
    total = sum(counts)
    mean = (reference.total + window.total) / total
    gram = reference.gram + window.gram - total * np.outer(mean, mean)
    gram[np.diag_indices_from(gram)] += SHRINKAGE * total
    factor = cho_factor(gram, check_finite=False)
    weights: Floats = cho_solve(factor, window.total - counts[1] * mean, check_finite=False)
    return weights


def _area(reference: np.ndarray, window: np.ndarray) -> float:
    """Share of pairs in which the window's vector is the higher one; a tie is half a pair."""
    ordered = np.sort(reference)
    under = sum(int(np.searchsorted(ordered, window, side).sum()) for side in ("left", "right"))
    return under / (2 * len(reference) * len(window))


def neighbours(healthy: np.ndarray, window: np.ndarray) -> float:
    """Mean change of the quantiles of nearest-neighbour distances: copies, near-copies, or fewer of them."""
    return float(np.abs(window - healthy).mean())


def pca_ratio_change(reference: Floats, window: Floats, judged: int) -> float:
    """Mean absolute change of the first *judged* explained-variance ratios."""
    return float(np.abs(reference[:judged] - window[:judged]).mean())


SUMMARY_DETECTORS: dict[str, Score] = {
    "mmd": _mmd,
    "location": _location,
    "centroid": _centroid,
    "coordinates": _coordinates,
    "psi": _psi,
    "within": _within,
    "novelty": _novelty,
    "covariance": _covariance,
    "classifier": _classifier,
}

DETECTORS = (*SUMMARY_DETECTORS, NEIGHBOURS)
"""Calibrated detectors, in the order in which they are shown; neighbours are held against what a healthy window's
are, all others against the reference. PCA_RATIO stands beside them, its threshold is given in slo.yaml."""

JUDGED = (*DETECTORS, EVIDENCE)
"""The same, and what they say together."""

SQUARED = frozenset({"mmd", "location", "centroid", "coordinates", "psi", "covariance"})
ROOT = frozenset({"within", "novelty"})
"""Detectors whose score is a distance between window and reference, or its square."""


def scores(
    basis: Basis, reference: Summary, window: Summary, healthy: np.ndarray, curve: np.ndarray
) -> dict[str, float]:
    """Every calibrated detector's score, in the order of DETECTORS; *healthy* and *curve*: see neighbours."""
    found = {name: score(basis, reference, window) for name, score in SUMMARY_DETECTORS.items()}
    return found | {NEIGHBOURS: neighbours(healthy, curve)}
