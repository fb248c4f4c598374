"""The paired test against tabled t quantiles and hand arithmetic."""

import math
import random

import pytest

from loadtests.pairtest import paired_loss, pairs_needed, t_quantile


@pytest.mark.parametrize(
    ("probability", "freedom", "tabled"),
    [
        (0.95, 1, 6.314),
        (0.95, 3, 2.353),
        (0.95, 4, 2.132),
        (0.975, 11, 2.201),
        (0.99, 30, 2.457),
        (0.5, 7, 0.0),
    ],
)
def test_t_quantiles_of_the_table(probability: float, freedom: int, tabled: float) -> None:
    """Values from a printed table of Student's distribution."""
    assert t_quantile(probability, freedom) == pytest.approx(tabled, abs=6e-4)


def test_loss_by_hand() -> None:
    """Ratios 0.9 and 1.0: mean log -0.05268, loss 5.13 %; sd 0.07450, t(0.95, 1) = 6.314, so at most 32.0 %."""
    found = paired_loss([(90.0, 100.0), (100.0, 100.0)], 0.05)

    assert found.loss == pytest.approx(1 - math.sqrt(0.9))
    assert found.noise == pytest.approx(0.0745, abs=1e-4)
    assert found.upper == pytest.approx(1 - math.exp(-0.05268 - 6.3138 * 0.0745 / math.sqrt(2)), abs=1e-3)
    assert not found.within(0.05)


def test_one_pair_shows_nothing() -> None:
    """With one pair there is no noise to judge by, so nothing is within any bound."""
    found = paired_loss([(100.0, 100.0)], 0.05)

    assert (found.upper, found.noise, found.within(0.5)) == (None, None, False)


def test_no_pairs_is_an_error() -> None:
    """Nothing cannot be compared."""
    with pytest.raises(ValueError, match="no pairs"):
        paired_loss([], 0.05)


def test_pairs_needed() -> None:
    """Less noise needs fewer pairs; a build at the bound is never shown to be under it."""
    assert pairs_needed(0.001, 0.05, 0.05) == 2
    few, many = pairs_needed(0.01, 0.05, 0.05), pairs_needed(0.05, 0.05, 0.05)
    assert few is not None and many is not None
    assert few < many
    assert pairs_needed(0.01, 0.05, 0.05, loss=0.05) is None


@pytest.mark.parametrize(("loss", "least", "most"), [(0.0, 0.95, 1.0), (0.05, 0.02, 0.09), (0.10, 0.0, 0.01)])
def test_pass_rates_of_known_losses(loss: float, least: float, most: float) -> None:
    """With the pairs it asks for: a good build passes 19 of 20 times, one at the bound 1 in 20, a worse one never."""
    rng, noise = random.Random(1), 0.015
    count = pairs_needed(noise, 0.05, 0.05)
    assert count is not None
    passes = sum(
        paired_loss([((1 - loss) * math.exp(rng.gauss(0, noise)), 1.0) for _ in range(count)], 0.05).within(
            0.05
        )
        for _ in range(1000)
    )

    assert least <= passes / 1000 <= most


def test_many_pairs_are_counted_as_few_are() -> None:
    """
    5 % noise, a loss of 4.5 % under a bound of 5 %: (2 × 1.6464 × 0.05 / ln(0.955 / 0.95))² = 983.5; with a loss of
    4.99 % it were 2.4 million, and no number does.
    """
    assert pairs_needed(0.05, 0.05, 0.05, loss=0.045) == 984
    assert pairs_needed(0.05, 0.05, 0.05, loss=0.0499) is None
