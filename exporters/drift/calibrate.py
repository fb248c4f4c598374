"""A reference judged against itself -> what each detector says of a healthy window, by window size.

A window of n is drawn from the reference without replacement and judged against the rest. Each detector is put
on a scale of its own tail (its 90 % quantile is 0, the mean excess over that 1), and so is what all of them say
together, their evidence, which half of the wanted share of false alarms is given to. The highest alarms; its limit
is where that share of healthy windows lies above, by an exponential fit of the tail, since a few hundred windows
hold few that rare.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exporters.drift.features import Features, ratios
from exporters.drift.scores import DETECTORS, ROOT, SQUARED, pca_ratio_change, scores
from exporters.drift.summary import NEIGHBOUR_QUANTILES, Context, neighbour_quantiles, summarise
from exporters.drift.vectors import Floats

ROUNDS = 240
PCA_ROUNDS = 60
SIZE_STEP = 1.5
TAIL = 0.9
MOST_CHUNKS = 3
_TINY = 1e-12


@dataclass(frozen=True)
class Calibration:
    """
    Healthy windows of one size.

    *thresholds*: a score a detector, in the order of JUDGED; *bases*: where the fitted tail of each begins, which
    is as far from a threshold as a healthy window's likelihood is from certain. *false_alarms*: share of healthy
    windows over each, then over any of them, then of the PCA score over its own limit. *neighbours* (51): quantiles
    of the distance to the nearest neighbour within a window. *medians*, *units*: see evidence().
    """

    size: int
    thresholds: np.ndarray
    bases: np.ndarray
    false_alarms: np.ndarray
    neighbours: np.ndarray
    medians: np.ndarray
    units: np.ndarray


def sizes(count: int, smallest: int, largest: int) -> tuple[int, ...]:
    """Window sizes that a reference of *count* vectors is calibrated for: at most half of it, rising by half."""
    most = min(largest, count // 2)
    found = [min(smallest, most)]
    while found[-1] < most:
        found.append(min(int(found[-1] * SIZE_STEP), most))
    return tuple(found)


def calibrate(
    vectors: Floats, of: Features, context: Context, size: int, false_alarm_rate: float,
    pca: tuple[int, int, float], seed: int, rounds: int = ROUNDS,
) -> Calibration:  # fmt: skip
    """Judge *rounds* healthy windows of *size*; *pca*: components, judged ones, and the limit of that score."""
    random = np.random.default_rng((seed, size))
    draws = [random.permutation(len(vectors)) for _ in range(rounds)]
    table, curve = _judged(of, context, size, draws)
    table *= _against_all(size, len(vectors))
    medians = np.median(table, axis=0)
    units = np.maximum(np.maximum(table - medians, 0).mean(axis=0) * 2, _TINY)
    table = np.column_stack([table, evidence(table, medians, units)])
    thresholds, bases = limits(table, false_alarm_rate)
    over = table > thresholds
    whole = ratios(vectors, pca[1])
    changes = [
        pca_ratio_change(whole, ratios(vectors[at[:size]], pca[1]), pca[1]) for at in draws[:PCA_ROUNDS]
    ]
    alarms = [*over.mean(axis=0), over.any(axis=1).mean(), float(np.mean(np.array(changes) > pca[2]))]
    found = {
        "thresholds": thresholds,
        "bases": bases,
        "false_alarms": alarms,
        "neighbours": curve,
        "medians": medians,
        "units": units,
    }
    return Calibration(size, **{name: np.asarray(values, np.float32) for name, values in found.items()})


def _judged(
    of: Features, context: Context, size: int, draws: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of each draw's first *size* vectors against all others, and the mean curve of neighbours."""
    scale, total, table = context.basis.scale, np.zeros(NEIGHBOUR_QUANTILES), []
    for at in draws:
        # Neighbours are held against others of the window's own size, none of which it shares a vector with.
        chunks = [at[n : n + size] for n in range(size, len(at) - size + 1, size)][:MOST_CHUNKS]
        curve = np.mean([neighbour_quantiles(scale, of.rows(chunk)) for chunk in chunks], axis=0)
        total += curve
        window, rest = of.rows(at[:size]), of.rows(at[size:])
        own = neighbour_quantiles(scale, window)
        found = scores(context.basis, summarise(context, rest), summarise(context, window), curve, own)
        table.append(list(found.values()))
    return np.array(table), total / len(draws)


def evidence(found: np.ndarray, medians: np.ndarray, units: np.ndarray) -> np.ndarray:
    """What all detectors say together: their excess over a healthy window's median, each in its mean excess."""
    together: np.ndarray = np.maximum((found - medians) / units, 0).sum(axis=-1)
    return together


def _against_all(size: int, count: int) -> np.ndarray:
    """
    Factor a detector from a window against the rest, to a window against all of the reference.

    A squared distance of two samples of one population grows with 1/n + 1/m; the rest is smaller than all.
    """
    smaller = (1 / size + 1 / count) / (1 / size + 1 / (count - size))
    powers = [1.0 if name in SQUARED else 0.5 if name in ROOT else 0.0 for name in DETECTORS]
    factors: np.ndarray = smaller ** np.array(powers)
    return factors


def limits(table: np.ndarray, false_alarm_rate: float) -> tuple[np.ndarray, np.ndarray]:
    """
    A threshold a column, so that the given share of rows has any column over its own, and each one's base.

    The last column has as much of that share as all others together.
    """
    start = np.quantile(table, TAIL, axis=0)
    beyond = np.where(table > start, table - start, np.nan)
    unit = np.maximum(np.nanmean(beyond, axis=0) if (table > start).any(axis=0).all() else start, _TINY)
    favour = np.zeros(table.shape[1])
    favour[-1] = np.log(max(table.shape[1] - 1, 1))
    highest = ((table - start) / unit + favour).max(axis=1)
    if false_alarm_rate >= 1 - TAIL:
        reach = float(np.quantile(highest, 1 - false_alarm_rate))
    else:
        often = float(np.quantile(highest, TAIL))
        excess = highest[highest > often] - often
        mean = float(excess.mean()) if len(excess) else 0.0
        reach = often + mean * float(np.log((1 - TAIL) / false_alarm_rate))
    thresholds = start + unit * (reach - favour)
    return thresholds, thresholds - unit * max(reach - np.log(1 - TAIL), 1.0)


def fitting(calibrations: Sequence[Calibration], count: int) -> Calibration | None:
    """The largest calibrated size that *count* vectors fill; None when they fill none."""
    filled = [one for one in calibrations if one.size <= count]
    return max(filled, key=lambda one: one.size) if filled else None
