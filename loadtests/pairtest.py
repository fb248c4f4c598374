"""Pairs of throughputs, candidate and baseline -> is the loss shown to be under a bound, and if not, how many pairs would tell.

The test: the logarithms of candidate/baseline are taken as normal; with a one-sided paired t-test at the given
significance the hypothesis "the loss is at or over the bound" must be rejected. A build at the bound passes with
that probability; noise that is too large for the number of pairs makes the result inconclusive, never a pass.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_MOST_PAIRS = 10_000


@dataclass(frozen=True, slots=True)
class PairedLoss:
    """Result of `paired_loss`; losses are ratios of the baseline, above 0 is slower.

    `upper` is the one-sided upper confidence bound of the loss; None with fewer than two pairs. `noise` is the
    standard deviation of one pair's log ratio.
    """

    pairs: int
    loss: float
    upper: float | None
    noise: float | None

    def within(self, bound: float) -> bool:
        """True when the loss is shown to be under *bound*."""
        return self.upper is not None and self.upper < bound


def paired_loss(pairs: Sequence[tuple[float, float]], significance: float) -> PairedLoss:
    """Loss of the first against the second of each pair; both must be above 0."""
    if not pairs:
        raise ValueError("no pairs: nothing can be compared")
    logs = [math.log(candidate / baseline) for candidate, baseline in pairs]
    count = len(logs)
    mean = sum(logs) / count
    if count < 2:
        return PairedLoss(count, 1 - math.exp(mean), None, None)
    noise = math.sqrt(sum((log - mean) ** 2 for log in logs) / (count - 1))
    margin = t_quantile(1 - significance, count - 1) * noise / math.sqrt(count)
    return PairedLoss(count, 1 - math.exp(mean), 1 - math.exp(mean - margin), noise)


def pairs_needed(noise: float, bound: float, significance: float, *, loss: float = 0.0) -> int | None:
    """Pairs with which a build of true *loss* passes with probability 1 - significance; None when no number does."""
    distance = math.log((1 - loss) / (1 - bound))
    if distance <= 0:
        return None

    def enough(count: int) -> bool:
        return 2 * t_quantile(1 - significance, count - 1) * noise / math.sqrt(count) <= distance

    # More pairs only help, so that a dozen quantiles tell, each of which takes the longer the more pairs there are.
    count = bisect_left(range(_MOST_PAIRS), True, lo=2, key=enough)
    return count if count < _MOST_PAIRS else None


@lru_cache
def t_quantile(probability: float, freedom: int) -> float:
    """Quantile of Student's t distribution, by bisection; *probability* in [0.5, 1)."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"probability: {probability} is not in [0.5, 1)")
    low, high = 0.0, 1.0
    while t_cdf(high, freedom) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if t_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def t_cdf(value: float, freedom: int) -> float:
    """Probability that Student's t with *freedom* degrees is at most *value* (value >= 0).

    Abramowitz and Stegun 26.7.3 and 26.7.4: finite sums, exact for whole degrees of freedom.
    """
    theta = math.atan(value / math.sqrt(freedom))
    sine, cosine = math.sin(theta), math.cos(theta)
    if freedom % 2 == 0:
        term = total = 1.0
        for step in range(1, freedom // 2):
            term *= (2 * step - 1) / (2 * step) * cosine**2
            total += term
        return 0.5 + sine * total / 2
    total, term = 0.0, cosine
    for step in range(1, (freedom - 1) // 2 + 1):
        total += term
        term *= 2 * step / (2 * step + 1) * cosine**2
    return 0.5 + (theta + sine * total) / math.pi
