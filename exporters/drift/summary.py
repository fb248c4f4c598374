"""A set of vectors, as features -> the few numbers by which detectors hold it against another set.

What is known of a reference is summed up once and not at every window; only the window's part is computed anew.
"""

from dataclasses import dataclass

import numpy as np

from exporters.drift.features import FAR, Basis, Features
from exporters.drift.vectors import Floats

PSI_BINS = 10
PSI_AXES = 10
COVARIANCE_AXES = 32
SQUARED_AXES = 16
NEIGHBOUR_QUANTILES = 51
CLIP = 5.0
SOFT = 1e-3  # added to a variance of about 1, so that none without spread has an infinite logarithm


@dataclass(frozen=True)
class Context:
    """
    What a summary needs to know of the reference beside its features.

    *edges* (c, 9): bin borders of each judged column, deciles of the reference. *rest* and *length*: mean and
    standard deviation of these in the reference. *basis*: its axes and centres. *within* (p): standard deviation
    along each axis around the nearest centre.
    """

    edges: np.ndarray
    rest: tuple[float, float]
    length: tuple[float, float]
    basis: Basis
    within: np.ndarray


@dataclass(frozen=True)
class Half:
    """Every second vector as the classifier sees it: *inputs* (n, q), their sum and their second moments (q, q)."""

    inputs: Floats
    total: Floats
    gram: Floats


@dataclass(frozen=True)
class Summary:
    """
    Of n vectors: *axes* (p + 2) means along the axes, of what those leave over and of the length, each in standard
    deviations; *logs* (p) logarithms of the variance along the axes; *random* (256) means of the random features;
    *own* and *own_logs* (d) means and log-variances of the numbers; *second* covariance of the main axes; *bins*
    (c, 10) counts by column; *within* (p + 2) as *axes*, around the nearest centre where there is one; *novel*: mean.
    """

    count: int
    axes: np.ndarray
    logs: np.ndarray
    random: np.ndarray
    own: np.ndarray
    own_logs: np.ndarray
    second: np.ndarray
    bins: np.ndarray
    within: np.ndarray
    novel: float
    halves: tuple[Half, Half]


def summarise(context: Context, of: Features) -> Summary:
    """Sum up the features of one set of vectors."""
    basis = context.basis
    rest, length = standard(of.rest, context.rest), standard(of.length, context.length)
    mean = of.z.mean(axis=0)
    variance = _variances(of.z, mean)
    own = of.own.mean(axis=0)
    shares = np.bincount(of.nearest, minlength=len(basis.centres)) / len(of.z)
    around = (mean - shares @ basis.centres) / context.within
    inputs = _inputs(of.z, rest, length)
    return Summary(
        count=len(of.z),
        axes=np.array([*mean, rest.mean(), length.mean()]),
        logs=np.log(np.maximum(variance * basis.scale**2, 1e-12)),
        random=of.random.mean(axis=0),
        own=own,
        own_logs=np.log(_variances(of.own, own) + SOFT),
        second=_second(of.z),
        bins=_bins(context.edges, judged(of.z, rest, length)),
        within=np.array([*around, rest.mean(), length.mean()]),
        novel=float(of.novel.mean()),
        halves=(_half(inputs[::2]), _half(inputs[1::2])),
    )


def standard(values: np.ndarray, moments: tuple[float, float]) -> np.ndarray:
    """Values less the reference's mean, over its standard deviation (0 where that is 0)."""
    mean, deviation = moments
    return (values - mean) / deviation if deviation > 0 else np.zeros_like(values)


def judged(z: np.ndarray, rest: np.ndarray, length: np.ndarray) -> np.ndarray:
    """The columns that are judged one by one: first axes, what is left over, the length; (n, c)."""
    return np.column_stack([z[:, :PSI_AXES], rest, length])


def decile_edges(column: np.ndarray) -> np.ndarray:
    """Nine borders; a constant column has all of them equal, and one bin holds everything."""
    edges: np.ndarray = np.quantile(column, np.linspace(0, 1, PSI_BINS + 1)[1:-1])
    return edges


def neighbour_quantiles(scale: np.ndarray, window: Features) -> np.ndarray:
    """51 quantiles of the distance to the nearest other vector, over the reference's spread."""
    at = np.column_stack([window.z * scale, np.sqrt(window.rest)])
    squares = np.einsum("ij,ij->i", at, at)
    between = at @ at.T
    between *= -2
    between += squares
    np.fill_diagonal(between, np.inf)
    nearest = np.sort(np.sqrt(np.maximum(between.min(axis=1) + squares, 0)))
    spread = float(np.sqrt((scale * scale).sum())) or 1.0
    places = np.linspace(0, len(nearest) - 1, NEIGHBOUR_QUANTILES)
    quantiles: np.ndarray = np.interp(places, np.arange(len(nearest)), nearest) / spread
    return quantiles


def _variances(columns: np.ndarray, mean: np.ndarray) -> np.ndarray:
    around = columns - mean
    found: np.ndarray = np.einsum("ij,ij->j", around, around) / len(columns)
    return found


def _second(z: np.ndarray) -> np.ndarray:
    main = np.clip(z[:, :COVARIANCE_AXES], -CLIP, CLIP)
    main = main - main.mean(axis=0)
    second: np.ndarray = main.T @ main / len(main)
    return second


def _bins(edges: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """How many values of each column lie in each of its bins."""
    at = (np.searchsorted(e, column, side="right") for e, column in zip(edges, columns.T, strict=True))
    return np.array([np.bincount(places, minlength=PSI_BINS) for places in at])


def _inputs(z: np.ndarray, rest: np.ndarray, length: np.ndarray) -> Floats:
    squares = np.minimum(z[:, :SQUARED_AXES] ** 2, CLIP**2)
    inputs: Floats = np.clip(np.column_stack([z, squares, rest, length]), -FAR, FAR)
    return inputs.astype(np.float32, copy=False)


def _half(inputs: Floats) -> Half:
    return Half(inputs, inputs.sum(axis=0), inputs.T @ inputs)
