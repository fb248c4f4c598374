"""Vectors -> what the detectors look at: principal coordinates, what those leave over, random features, novelty.

Axes are fitted once, at the fit of a profile, and travel in it, so that neither the sign of an axis nor the
order of equal ones can differ between a reference and a window.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh
from scipy.sparse.linalg import ArpackError, eigsh

from exporters.drift.vectors import Floats

MAX_AXES = 128
RANDOM_FEATURES = 256
FEWEST_AXES = 16
FAR = 100.0  # standard deviations; what lies further is as far as can be
_NEARLY_CONSTANT = 1e-3  # of the median spread: a number that hardly moves is judged as if it moved so much
_EVEN = 0.2  # variances that differ less have no order that could be told
_TINY = 1e-12
_EIGEN_TOLERANCE = 1e-4
_SMALL = 150  # up to this size all eigenvalues at once are quicker than the largest few one by one
MOST_CLUSTERS = 16
_CLUSTER_VECTORS = 30  # of those that axes are fitted to, by cluster
_BANDWIDTH_PAIRS = 1000
_BANDWIDTHS = (0.5, 1.0)  # of the median distance; half of the features each
_REMEMBERED, _REMEMBERED_AXES = 1000, 32
_ROUNDING = 1e-5  # of a vector's squared length around the mean: what a squared distance from it is known to


@dataclass(frozen=True)
class Basis:
    """
    Axes of a reference.

    *mean* (d), *axes* (d, p) with p ≤ 128, *scale* (p): standard deviation along each axis, *frequencies*
    (p, 256) and *phases* (256) of the random Fourier features; *spread* (d): standard deviation of each number;
    *centres* (k, p): k-means clusters, in principal coordinates over their scale. *remembered* (m, q + 1) with m ≤ 1000
    and q ≤ 32: the first principal coordinates of some of the reference's vectors, and the squared length of each around
    the mean; *nearest* (m): squared distances from each of these to the nearest other one, rising.
    """

    mean: Floats
    axes: Floats
    scale: Floats
    frequencies: Floats
    phases: Floats
    spread: Floats
    centres: Floats
    remembered: Floats
    nearest: Floats


@dataclass(frozen=True)
class Features:
    """
    Of n vectors: *z* (n, p) principal coordinates over their scale, *rest* (n) what the axes do not hold of
    the squared length around the mean, *length* (n) the length of the vector, *random* (n, 256), *own* (n, d) the
    numbers themselves, less their mean and over their spread; *nearest* (n) which centre is the nearest; *novel* (n):
    how rare a distance to the nearest remembered vector such as this one's is in the reference, see _novel().
    """

    z: Floats
    rest: Floats
    length: Floats
    random: Floats
    own: Floats
    nearest: np.ndarray
    novel: Floats

    def rows(self, at: np.ndarray) -> "Features":
        """The features of some of the vectors."""
        return Features(*(values[at] for values in vars(self).values()))


def fit_basis(vectors: Floats, seed: int, remember: Floats | None = None) -> Basis:
    """
    Axes of *vectors* (n, d); directions without variance (constant or dependent columns) are left out.

    The first 1000 of *remember*, by default of *vectors*, are remembered.
    """
    mean = vectors.mean(axis=0, dtype=np.float64)
    values, axes = _principal(vectors - mean, MAX_AXES)
    kept = values > max(_TINY, values[0] * 1e-6) if len(values) else np.zeros(0, bool)
    if not kept.any():
        kept = np.zeros(len(values), bool)
    values, axes = values[kept], axes[:, kept]
    random = np.random.default_rng(seed)
    z = (vectors - mean) @ axes
    pairs = random.integers(0, len(vectors), (2, _BANDWIDTH_PAIRS))
    distances = np.sqrt(((z[pairs[0]] - z[pairs[1]]) ** 2).sum(axis=1))
    median = float(np.median(distances[distances > 0])) if (distances > 0).any() else 1.0
    scale = np.sqrt(values)
    spread = vectors.std(axis=0, dtype=np.float64)
    moving = spread[spread > 0]
    spread = np.maximum(spread, _NEARLY_CONSTANT * (np.median(moving) if len(moving) else 1.0))
    widths = np.repeat(_BANDWIDTHS, RANDOM_FEATURES // len(_BANDWIDTHS)) * median
    frequencies = random.standard_normal((len(values), RANDOM_FEATURES)) / widths * scale[:, None]
    phases = random.uniform(0, 2 * np.pi, RANDOM_FEATURES)
    centred = (vectors if remember is None else remember)[:_REMEMBERED] - mean
    along, squared = centred @ axes[:, :_REMEMBERED_AXES], np.einsum("ij,ij->i", centred, centred)
    remembered = np.column_stack([along, squared])
    nearest = np.sort(_to_nearest(remembered, along, squared, themselves=True))
    centres = _centres(z, seed) / np.maximum(scale, _TINY)
    found = (mean, axes, scale, frequencies, phases, spread, centres, remembered, nearest)
    return Basis(*(np.asarray(a, np.float32) for a in found))


def _centres(along: np.ndarray, seed: int) -> np.ndarray:
    """Centres of k-means clusters of principal coordinates (n, p); one where there are too few vectors or axes."""
    count = max(1, min(MOST_CLUSTERS, len(along) // _CLUSTER_VECTORS)) if along.shape[1] else 1
    if count == 1:
        middle: np.ndarray = along.mean(axis=0, keepdims=True)
        return middle
    # Only a fit needs it: imported with the exporter it would be half of its start and of its memory.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # fewer distinct vectors than clusters: some are equal
        centres: np.ndarray = KMeans(count, n_init=3, random_state=seed).fit(along).cluster_centers_
    return centres


def features(basis: Basis, vectors: Floats, *, remembered: bool = False) -> Features:
    """
    What the detectors look at, of vectors of shape (n, d).

    *remembered*: the first of them are those that the basis remembers; none is new because it is not itself.
    """
    centred = vectors - basis.mean
    along = centred @ basis.axes
    squared = np.einsum("ij,ij->i", centred, centred)
    rest = np.maximum(squared - np.einsum("ij,ij->i", along, along), 0)
    z = np.asarray(along / basis.scale, np.float32)
    random = np.cos(z @ basis.frequencies + basis.phases)
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    own = np.clip(centred / basis.spread, -FAR, FAR)
    centres = basis.centres * basis.scale
    nearest = ((centres * centres).sum(axis=1) - 2 * along @ centres.T).argmin(axis=1)
    distances = _to_nearest(basis.remembered, along, squared, themselves=remembered)
    novel = _novel(basis, distances - _ROUNDING * squared)
    return Features(z, rest, length, random.astype(np.float32, copy=False), own, nearest, novel)


def _to_nearest(
    remembered: np.ndarray, along: np.ndarray, squared: np.ndarray, *, themselves: bool
) -> Floats:
    """
    Squared distance to the nearest remembered vector, of vectors of which *along* (n, ≥ q) and *squared* (n) are known.

    What these few axes do not hold of two vectors is taken as unrelated, so that its squares add up. *themselves*: the
    first of the vectors are the remembered ones, and none is its own neighbour.
    """
    between = along[:, : remembered.shape[1] - 1] @ (-2 * remembered[:, :-1].T)
    between += remembered[:, -1]
    if themselves:
        np.fill_diagonal(between, np.inf)
    found: Floats = np.asarray(between.min(axis=1) + squared, np.float32)
    return found


def _novel(basis: Basis, distances: Floats) -> Floats:
    """
    Squared logarithm of the share of the reference's vectors that lie as far from what is remembered, or farther.

    A few vectors of a kind that the reference never saw move every mean by little; here each of them counts fifty.
    *distances*: at least, so that copies, of which many references have some, are as far as each other.
    """
    count = len(basis.nearest)
    as_far = count - np.searchsorted(basis.nearest, distances)
    found: Floats = np.log((as_far + 1) / (count + 1)).astype(np.float32) ** 2
    return found


def ratios(vectors: Floats, components: int) -> Floats:
    """Explained-variance ratios of the first *components* principal components, 0 where there are fewer."""
    out = np.zeros(components)
    centred = (vectors - vectors.mean(axis=0, dtype=np.float64)).astype(np.float32)
    total = float(np.einsum("ij,ij->", centred, centred, dtype=np.float64))
    if total <= _TINY or len(vectors) < 2:
        return out.astype(np.float32)
    matrix = centred.T @ centred if centred.shape[1] <= len(centred) else centred @ centred.T
    size = len(matrix)
    count = min(components, size)
    out[:count] = np.maximum(_largest(matrix, count), 0) / total
    return out.astype(np.float32)


def _largest(matrix: np.ndarray, count: int) -> np.ndarray:
    """The largest eigenvalues of a symmetric matrix, falling."""
    size = len(matrix)
    found: np.ndarray
    if size > _SMALL:
        start = np.random.default_rng(size).standard_normal(size).astype(matrix.dtype)
        try:
            found = eigsh(matrix, count, v0=start, tol=_EIGEN_TOLERANCE, return_eigenvectors=False)
            return np.sort(found)[::-1]
        except ArpackError:  # where many are equal it may find no end; the slow way always does
            pass
    found = eigvalsh(matrix, subset_by_index=(size - count, size - 1), check_finite=False)
    return found[::-1]


def likeness(reference: np.ndarray, window: np.ndarray) -> float | None:
    """
    Correlation of the logarithms of two sets' variances along the same axes.

    A model spreads whatever it is given more along some axes of its space than along others, so that other
    topics stay at 0.4 and more; in another model's space the axes mean nothing, and it is near 0. None with
    fewer than 16 axes, which are too few to tell.
    """
    if len(reference) < FEWEST_AXES or min(reference.std(), window.std()) < _EVEN:
        return None
    return float(np.corrcoef(reference, window)[0, 1])


def _principal(centred: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Variances and axes of centred vectors (n, d), largest first, at most *most*; right when n < d too."""
    n, d = centred.shape
    if d <= n:
        count = min(most, d)
        values, axes = eigh(centred.T @ centred / n, subset_by_index=(d - count, d - 1))
        return values[::-1], axes[:, ::-1]
    count = min(most, n)
    values, left = eigh(centred @ centred.T / n, subset_by_index=(n - count, n - 1))
    values, left = values[::-1], left[:, ::-1]
    lengths = np.sqrt(np.maximum(values * n, _TINY))
    return values, centred.T @ left / lengths
