"""Numerics: signs, missing rank, constant columns, empty bins."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from exporters.drift.features import features, fit_basis, likeness, ratios
from exporters.drift.fit import fit
from exporters.drift.judge import judge
from exporters.drift.profile import Profile
from exporters.drift.scores import DETECTORS, pca_ratio_change, psi
from exporters.drift.summary import summarise
from slo.signals import Drift


def test_psi_with_an_empty_bin_is_finite_and_small(case: Callable[[str, str], Any]) -> None:
    """A65: half a count on both sides gives 0.1227, and the identical pair 0."""
    bins, same = case("A65", "bins"), case("A65", "identical")

    assert psi(np.array(bins["reference"]), np.array(bins["current"])) == pytest.approx(0.1227, abs=5e-5)
    assert psi(np.array(same["reference"]), np.array(same["current"])) == 0


def test_explained_variance_by_hand() -> None:
    """Points at ±3 on one axis and ±1 on another: variances 4.5 and 0.5 of 5, so 0.9 and 0.1."""
    points = np.array([[3, 0, 7], [-3, 0, 7], [0, 1, 7], [0, -1, 7]], np.float32)

    assert ratios(points, 4) == pytest.approx([0.9, 0.1, 0, 0], abs=1e-6)


def test_pca_score_by_hand() -> None:
    """Ratios .5 .2 .1 .1 .0 against .3 .2 .2 .1 .1 differ by (.2 + 0 + .1 + 0 + .1) / 5 = .08."""
    score = pca_ratio_change(
        np.array([0.5, 0.2, 0.1, 0.1, 0.0, 0.1]), np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.9]), 5
    )

    assert score == pytest.approx(0.08)


def test_fewer_vectors_than_dimensions_give_the_same_ratios_both_ways() -> None:
    """Of 20 vectors in 200 dimensions the small matrix is used; a full decomposition agrees."""
    points = np.random.default_rng(0).standard_normal((20, 200)).astype(np.float32)
    singular = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2

    assert ratios(points, 5) == pytest.approx(singular[:5] / singular.sum(), rel=1e-4)


def test_flipped_axes_change_no_score(
    profile: Profile, make: Callable[..., np.ndarray], drift: Drift
) -> None:
    """An eigenvector and its opposite are the same axis: what reference and window share flips both."""
    window = make(300, 5, shift=1.0)
    before = judge(profile, window, drift)
    basis = profile.basis
    signs = np.where(np.arange(basis.axes.shape[1]) % 2, -1, 1).astype(np.float32)
    flipped = replace(
        basis,
        axes=basis.axes * signs,
        frequencies=basis.frequencies * signs[:, None],
        centres=basis.centres * signs,
        remembered=basis.remembered * np.append(signs[: basis.remembered.shape[1] - 1], 1),
    )
    context = replace(profile.context, basis=flipped)
    turned = replace(
        profile,
        basis=flipped,
        context=context,
        summary=summarise(context, features(flipped, profile.vectors, remembered=True)),
    )
    after = judge(turned, window, drift)

    unchanged = [name for name in DETECTORS if name != "psi"]  # deciles of -x are not those of x
    assert [after.scores[n] for n in unchanged] == pytest.approx(
        [before.scores[n] for n in unchanged], rel=1e-3
    )


def test_constant_and_dependent_columns_are_left_out(drift: Drift) -> None:
    """Rank 2 in 6 columns, one of them constant: two axes, every score finite, and healthy is no drift."""

    def low_rank(seed: int, n: int) -> np.ndarray:
        a, b = np.random.default_rng(seed).standard_normal((2, n))
        return np.column_stack([a, b, a + b, a - b, 2 * a, np.full(n, 3.0)]).astype(np.float32)

    profile = fit(low_rank(1, 1000), "m", "", drift, rounds=40)
    verdict = judge(profile, low_rank(2, 300), drift)

    assert profile.basis.axes.shape == (6, 2)
    assert all(math.isfinite(score) for score in verdict.scores.values())
    assert verdict.state == "no"


def test_likeness_tells_another_space_from_another_topic() -> None:
    """Spread falling from axis to axis: 1 for the same, high for a part of the axes, near 0 when turned at random."""
    random = np.random.default_rng(4)
    points = (random.standard_normal((2000, 200)) / (1 + np.arange(200))).astype(np.float32)
    basis = fit_basis(points[:1000], seed=1)
    turn, _ = np.linalg.qr(random.standard_normal((200, 200)))
    topic = points[1000:].copy()
    topic[:, ::2] *= 0.5

    def alike(vectors: np.ndarray) -> float:
        logs = (np.log(features(basis, v).z.var(axis=0) * basis.scale**2) for v in (points[:1000], vectors))
        return likeness(*logs) or 0.0

    assert alike(points[1000:]) > 0.98
    assert alike(topic) > 0.8
    assert abs(alike(points[1000:] @ turn.astype(np.float32))) < 0.3


def test_few_or_even_axes_have_no_likeness() -> None:
    """4 dimensions, and 40 that are all alike: nothing can be told, which is None and not 0."""
    random = np.random.default_rng(4)
    for size in (4, 40):
        points = random.standard_normal((2000, size)).astype(np.float32)
        basis = fit_basis(points, seed=1)
        logs = np.log(features(basis, points).z.var(axis=0) * basis.scale**2)
        assert likeness(logs, logs) is None


def test_a_window_of_equal_vectors_is_judged_without_nan(profile: Profile, drift: Drift) -> None:
    """300 copies of one vector: every score is finite and the answer is drift."""
    verdict = judge(profile, np.repeat(profile.vectors[:1], 300, axis=0), drift)

    assert all(math.isfinite(score) for score in verdict.scores.values())
    assert verdict.state == "yes"


def test_many_dimensions_and_few_ranks_give_the_ratios_of_a_full_decomposition() -> None:
    """Over 150 dimensions the largest eigenvalues are found one by one: rank 2 of 400, and 200 equal ones."""
    random = np.random.default_rng(0)
    low = (random.standard_normal((300, 2)) @ random.standard_normal((2, 400))).astype(np.float32)
    singular = np.linalg.svd(low - low.mean(axis=0), compute_uv=False) ** 2
    turn = np.linalg.qr(random.standard_normal((200, 200)))[0].astype(np.float32)

    assert ratios(low, 5) == pytest.approx(singular[:5] / singular.sum(), abs=1e-5)
    assert ratios(np.concatenate([turn, -turn]), 5) == pytest.approx([1 / 200] * 5, rel=1e-4)
