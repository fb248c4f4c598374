"""How far vectors lie from what the reference remembers, by hand; and a few of a kind never seen, which it is for."""

from collections.abc import Callable
from math import log

import numpy as np
import pytest

from exporters.drift.features import features, fit_basis
from exporters.drift.judge import judge
from exporters.drift.profile import Profile
from slo.signals import Drift


def test_novelty_by_hand() -> None:
    """Of 0, 1, 3 and 7 the nearest others are 1, 1, 2 and 4 away: as far as 0.5 are all, as 3 one, as 93 none."""
    points = np.array([[0, 5], [1, 5], [3, 5], [7, 5]], np.float32)
    asked = np.array([[3.5, 5], [10, 5], [100, 5]], np.float32)

    novel = features(fit_basis(points, seed=1), asked).novel

    assert novel == pytest.approx([0, log(2 / 5) ** 2, log(1 / 5) ** 2], abs=1e-5)


def test_what_is_remembered_is_not_its_own_neighbour() -> None:
    """Of 0, 1, 3 and 7 three are as far as 1 or farther behind the first two, so 5/5, 5/5, 3/5 and 2/5."""
    points = np.array([[0, 5], [1, 5], [3, 5], [7, 5]], np.float32)

    novel = features(fit_basis(points, seed=1), points, remembered=True).novel

    assert novel == pytest.approx([0, 0, log(3 / 5) ** 2, log(2 / 5) ** 2], abs=1e-5)


def test_a_few_vectors_of_a_kind_never_seen_are_drift(
    profile: Profile, make: Callable[..., np.ndarray], drift: Drift
) -> None:
    """Nine of 300 lie far from all centres, one direction each: no mean moves, and novelty is over its threshold."""
    window = make(300, 8)
    away = np.random.default_rng(5).standard_normal((9, window.shape[1])).astype(np.float32)
    window[:9] = away / np.linalg.norm(away, axis=1, keepdims=True) * 12

    verdict = judge(profile, window, drift)

    assert verdict.scores["novelty"] > verdict.thresholds["novelty"]
    assert verdict.scores["centroid"] < verdict.thresholds["centroid"]
    assert verdict.state == "yes"


def test_copies_are_not_told_apart_by_rounding() -> None:
    """Each of fifty vectors stands eight times: a copy is as near as all are, however computed: ln(401/401)² = 0."""
    known = np.random.default_rng(3).standard_normal((50, 16)).astype(np.float32)
    points = np.tile(known, (8, 1))
    basis = fit_basis(points, seed=1)

    assert not features(basis, points, remembered=True).novel.any()
    assert not features(basis, known).novel.any()
    assert not any(features(basis, one[None]).novel.any() for one in known)
