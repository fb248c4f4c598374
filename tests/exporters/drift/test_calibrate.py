"""Thresholds from healthy windows: by hand, and on windows that no threshold was made of."""

from collections.abc import Callable

import numpy as np
import pytest

from exporters.drift.calibrate import evidence, limits
from exporters.drift.fit import fit
from exporters.drift.judge import judge
from exporters.drift.profile import Profile
from slo.signals import Drift

Make = Callable[..., np.ndarray]


def test_evidence_by_hand() -> None:
    """Scores 3 and 1 over medians 1 and 2, mean excesses 2 and 5: (3 − 1) / 2, and nothing for what is under."""
    found = np.array([[3.0, 1.0], [1.0, 12.0], [0.0, 0.0]])

    assert evidence(found, np.array([1.0, 2.0]), np.array([2.0, 5.0])) == pytest.approx([1.0, 2.0, 0.0])


def test_the_stated_share_of_exponential_windows_is_over_a_threshold() -> None:
    """Two independent detectors with exponential tails and their sum, 4000 windows: 1 % of 40 000 others alarm."""
    random = np.random.default_rng(5)

    def table(count: int) -> np.ndarray:
        two = random.exponential([1.0, 10.0], (count, 2))
        return np.column_stack([two, two @ [1.0, 0.1]])

    thresholds, bases = limits(table(4000), 0.01)
    over = table(40_000) > thresholds

    assert over.any(axis=1).mean() == pytest.approx(0.01, abs=0.004)
    assert over[:, 2].mean() > over[:, 0].mean()  # half of the share is for the last column
    assert thresholds[1] / thresholds[0] == pytest.approx(10, rel=0.2)
    assert (bases < thresholds).all()


def test_equal_windows_have_a_threshold_above_them() -> None:
    """A column that never moves (a constant length, say) alarms at no healthy window."""
    random = np.random.default_rng(5)
    table = np.column_stack([np.zeros(240), *random.exponential(1.0, (2, 240))])
    thresholds, _ = limits(table, 0.01)

    assert np.isfinite(thresholds).all()
    assert not (table[:, 0] > thresholds[0]).any()


def test_a_little_everywhere_is_drift_by_the_evidence_of_all(make: Make, drift: Drift) -> None:
    """Half a standard deviation along one axis: some windows are over the evidence alone, none is over it when healthy."""
    profile = fit(make(1200, 1), "embed-a", "1", drift, created=0.0)
    shifted = [judge(profile, make(300, 100 + n, shift=0.45), drift) for n in range(20)]
    healthy = [judge(profile, make(300, 200 + n), drift) for n in range(20)]

    over = [v.scores["evidence"] > v.thresholds["evidence"] for v in shifted]
    assert sum(over) > 10
    assert sum(v.scores["evidence"] > v.thresholds["evidence"] for v in healthy) <= 1


def test_one_axis_of_many_is_seen_around_the_centres(make: Make, profile: Profile, drift: Drift) -> None:
    """One axis moved by 0.6 of its spread: the largest shift around the centres is far over its threshold."""
    verdict = judge(profile, make(300, 7, shift=0.6), drift)

    assert verdict.scores["within"] > 1.5 * verdict.thresholds["within"]
    assert verdict.state == "yes"


def test_the_ratio_is_at_one_where_a_score_is_at_its_threshold(
    make: Make, profile: Profile, drift: Drift
) -> None:
    """Over some threshold exactly when the ratio is over 1, never under 0."""
    for seed in range(30):
        verdict = judge(profile, make(300, seed, shift=0.3), drift)
        over = any(verdict.scores[name] > limit for name, limit in verdict.thresholds.items())
        assert verdict.ratio is not None
        assert (verdict.ratio > 1) == over
        assert verdict.ratio >= 0
