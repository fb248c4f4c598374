"""Reference and window, as features -> one number a detector: 0 alike, larger the more they differ.

A new detector is a function and one line in DETECTORS. Each says what it catches; what a number means is
settled by calibration against the reference itself (exporters/drift/calibrate.py).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from sklearn.linear_model import Ridge

from exporters.drift.features import FAR, Features
from exporters.drift.vectors import Floats

PSI_BINS = 10
PSI_AXES = 10
COVARIANCE_AXES = 32
SQUARED_AXES = 16
NEIGHBOUR_QUANTILES = 51
CLIP = 5.0
SOFT = 1e-3  # added to a variance of about 1, so that none without spread has an infinite logarithm
SHRINKAGE = 0.1
PCA_RATIO = "pca_ratio_change"


@dataclass(frozen=True)
class Context:
    """
    What scores need to know of a reference beside its features.

    *edges* (c, 9): bin borders of each judged column, deciles of the reference. *rest* and *length*: mean and
    standard deviation of these in the reference. *neighbours* (51): quantiles of the distance to the nearest
    neighbour within a healthy window of the size that is judged.
    """

    edges: np.ndarray
    rest: tuple[float, float]
    length: tuple[float, float]
    scale: np.ndarray
    neighbours: np.ndarray


Score = Callable[[Context, Features, Features], float]


def psi(reference: np.ndarray, current: np.ndarray) -> float:
    """
    Population stability index of two rows of counts.

    Half a count is added to every bin on both sides, so that an empty bin is finite and treated alike on either
    side: [50 30 20 0] against [45 30 20 5] gives 0.123.
    """
    p = (reference + 0.5) / (reference + 0.5).sum()
    q = (current + 0.5) / (current + 0.5).sum()
    return float(((q - p) * np.log(q / p)).sum())


def columns(context: Context, of: Features) -> np.ndarray:
    """The columns that are judged one by one: first axes, what is left over, the length; (n, c)."""
    return np.column_stack(
        [of.z[:, :PSI_AXES], standard(of.rest, context.rest), standard(of.length, context.length)]
    )


def standard(values: np.ndarray, moments: tuple[float, float]) -> np.ndarray:
    """Values less the reference's mean, over its standard deviation (0 where that is 0)."""
    mean, deviation = moments
    return (values - mean) / deviation if deviation > 0 else np.zeros_like(values)


def decile_edges(column: np.ndarray) -> np.ndarray:
    """Nine borders; a constant column has all of them equal, and one bin holds everything."""
    edges: np.ndarray = np.quantile(column, np.linspace(0, 1, PSI_BINS + 1)[1:-1])
    return edges


def _mmd(_: Context, reference: Features, window: Features) -> float:
    """Maximum mean discrepancy, squared, by random Fourier features: any change of shape or place."""
    gap = reference.random.mean(axis=0) - window.random.mean(axis=0)
    return float(2 * gap @ gap / len(gap))


def _location(context: Context, reference: Features, window: Features) -> float:
    """Squared distance of the means in standard deviations, over all axes: a mean shift."""
    gap = reference.z.mean(axis=0) - window.z.mean(axis=0)
    rest = float(reference.rest.mean() - window.rest.mean()) / (context.rest[1] or 1)
    length = float(reference.length.mean() - window.length.mean()) / (context.length[1] or 1)
    return float(gap @ gap) + rest**2 + length**2


def _centroid(context: Context, reference: Features, window: Features) -> float:
    """Squared distance of the means as they lie, over the spread: a shift along the axes that spread most."""
    gap = (reference.z.mean(axis=0) - window.z.mean(axis=0)) * context.scale
    return float(gap @ gap) / (float(context.scale @ context.scale) or 1.0)


def _coordinates(_: Context, reference: Features, window: Features) -> float:
    """
    Change of mean and spread of the numbers one by one, each in its own standard deviations.

    Models have numbers that hardly move; noise and rotations show there first, and the main axes never see it.
    """
    gap = reference.own.mean(axis=0) - window.own.mean(axis=0)
    spreads = [np.log(of.own.var(axis=0) + SOFT) for of in (reference, window)]
    change = spreads[0] - spreads[1]
    return float(gap @ gap + change @ change / 2) / len(gap)


def _psi(context: Context, reference: Features, window: Features) -> float:
    """Mean PSI over the first axes, the remainder and the length: one column that changes shape."""
    a, b = columns(context, reference), columns(context, window)
    return float(
        np.mean([psi(_counts(e, a[:, c]), _counts(e, b[:, c])) for c, e in enumerate(context.edges)])
    )


def _counts(edges: np.ndarray, column: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(edges, column, side="right"), minlength=PSI_BINS)


def _covariance(_: Context, reference: Features, window: Features) -> float:
    """Squared difference of the covariances of the main axes: a rotation, noise, lost or new spread."""
    gap = _second(reference.z) - _second(window.z)
    return float((gap * gap).sum())


def _second(z: np.ndarray) -> np.ndarray:
    main = np.clip(z[:, :COVARIANCE_AXES], -CLIP, CLIP)
    main = main - main.mean(axis=0)
    second: np.ndarray = main.T @ main / len(main)
    return second


def _neighbours(context: Context, _: Features, window: Features) -> float:
    """Mean change of the quantiles of nearest-neighbour distances: copies, near-copies, or fewer of them."""
    return float(np.abs(neighbour_quantiles(context.scale, window) - context.neighbours).mean())


def neighbour_quantiles(scale: np.ndarray, window: Features) -> np.ndarray:
    """51 quantiles of the distance to the nearest other vector, over the reference's spread."""
    at = np.column_stack([window.z * scale, np.sqrt(window.rest)])
    squares = np.einsum("ij,ij->i", at, at)
    between = at @ at.T
    between *= -2
    between += squares
    np.fill_diagonal(between, np.inf)
    nearest = np.sqrt(np.maximum(between.min(axis=1) + squares, 0))
    spread = float(np.sqrt((scale * scale).sum())) or 1.0
    found: np.ndarray = np.quantile(nearest, np.linspace(0, 1, NEIGHBOUR_QUANTILES)) / spread
    return found


def _classifier(context: Context, reference: Features, window: Features) -> float:
    """
    How well a linear classifier (least squares, shrunk) tells window from reference on vectors it never saw.

    Area under the curve less a half, mean of two folds: new clusters, and shifts over many axes at once.
    """
    x = np.concatenate([_inputs(context, reference), _inputs(context, window)])
    y = np.concatenate([np.zeros(len(reference.z), np.float32), np.ones(len(window.z), np.float32)])
    even = np.arange(len(y)) % 2 == 0
    areas = []
    for train in (even, ~even):
        model = Ridge(alpha=SHRINKAGE * train.sum(), solver="cholesky", copy_X=False)
        areas.append(_area(model.fit(x[train], y[train]).predict(x[~train]), y[~train]))
    return max(float(np.mean(areas)) - 0.5, 0.0)


def _inputs(context: Context, of: Features) -> np.ndarray:
    squares = np.minimum(of.z[:, :SQUARED_AXES] ** 2, CLIP**2)
    rest, length = standard(of.rest, context.rest), standard(of.length, context.length)
    stacked: np.ndarray = np.column_stack([of.z, squares, rest, length]).astype(np.float32, copy=False)
    clipped: np.ndarray = np.clip(stacked, -FAR, FAR)
    return clipped


def _area(decision: np.ndarray, y: np.ndarray) -> float:
    ranks = rankdata(decision)
    positives = int(y.sum())
    return float((ranks[y == 1].sum() - positives * (positives + 1) / 2) / (positives * (len(y) - positives)))


def pca_ratio_change(reference: Floats, window: Floats, judged: int) -> float:
    """Mean absolute change of the first *judged* explained-variance ratios."""
    return float(np.abs(reference[:judged] - window[:judged]).mean())


DETECTORS: dict[str, Score] = {
    "mmd": _mmd,
    "location": _location,
    "centroid": _centroid,
    "coordinates": _coordinates,
    "psi": _psi,
    "covariance": _covariance,
    "neighbours": _neighbours,
    "classifier": _classifier,
}
"""Calibrated detectors, in the order in which they are shown; PCA_RATIO stands beside them, its threshold is
given in slo.yaml."""

SQUARED = frozenset({"mmd", "location", "centroid", "coordinates", "psi", "covariance"})
"""Detectors whose score is a squared distance between window and reference."""
