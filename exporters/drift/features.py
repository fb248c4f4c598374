"""Vectors -> what the detectors look at: principal coordinates, what those leave over, random features.

Axes are fitted once, at the fit of a profile, and travel in it, so that neither the sign of an axis nor the
order of equal ones can differ between a reference and a window.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, eigvalsh

from exporters.drift.vectors import Floats

MAX_AXES = 128
RANDOM_FEATURES = 256
FEWEST_AXES = 16
FAR = 100.0  # standard deviations; what lies further is as far as can be
_NEARLY_CONSTANT = 1e-3  # of the median spread: a number that hardly moves is judged as if it moved so much
_EVEN = 0.2  # variances that differ less have no order that could be told
_TINY = 1e-12
_BANDWIDTH_PAIRS = 1000
_BANDWIDTHS = (0.5, 1.0)  # of the median distance; half of the features each


@dataclass(frozen=True)
class Basis:
    """
    Axes of a reference.

    *mean* (d), *axes* (d, p) with p ≤ 128, *scale* (p): standard deviation along each axis, *frequencies*
    (p, 256) and *phases* (256) of the random Fourier features; *spread* (d): standard deviation of each number.
    """

    mean: Floats
    axes: Floats
    scale: Floats
    frequencies: Floats
    phases: Floats
    spread: Floats


@dataclass(frozen=True)
class Features:
    """
    Of n vectors: *z* (n, p) principal coordinates over their scale, *rest* (n) what the axes do not hold of
    the squared length around the mean, *length* (n) the length of the vector, *random* (n, 256), *own* (n, d) the
    numbers themselves, less their mean and over their spread.
    """

    z: Floats
    rest: Floats
    length: Floats
    random: Floats
    own: Floats

    def rows(self, at: np.ndarray) -> "Features":
        """The features of some of the vectors."""
        return Features(self.z[at], self.rest[at], self.length[at], self.random[at], self.own[at])


def fit_basis(vectors: Floats, seed: int) -> Basis:
    """Axes of *vectors* (n, d); directions without variance (constant or dependent columns) are left out."""
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
    return Basis(*(np.asarray(a, np.float32) for a in (mean, axes, scale, frequencies, phases, spread)))


def features(basis: Basis, vectors: Floats) -> Features:
    """What the detectors look at, of vectors of shape (n, d)."""
    centred = vectors - basis.mean
    along = centred @ basis.axes
    squared = np.einsum("ij,ij->i", centred, centred)
    rest = np.maximum(squared - np.einsum("ij,ij->i", along, along), 0)
    z = np.asarray(along / basis.scale, np.float32)
    random = np.cos(z @ basis.frequencies + basis.phases)
    length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    own = np.clip(centred / basis.spread, -FAR, FAR)
    return Features(z, rest, length, random.astype(np.float32, copy=False), own)


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
    values = eigvalsh(matrix, subset_by_index=(size - count, size - 1), check_finite=False)[::-1]
    out[:count] = np.maximum(values, 0) / total
    return out.astype(np.float32)


def spread_logs(z: Floats, scale: Floats) -> np.ndarray:
    """Logarithm of the variance along each axis, of principal coordinates *z* (n, p)."""
    logs: np.ndarray = np.log(np.maximum(z.var(axis=0) * scale * scale, _TINY))
    return logs


def likeness(reference: np.ndarray, window: np.ndarray) -> float | None:
    """
    Correlation of two `spread_logs` of the same axes.

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
