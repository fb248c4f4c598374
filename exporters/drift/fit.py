"""Healthy vectors of one model -> its reference profile: axes, statistics, thresholds."""

import time

import numpy as np

from exporters.drift.calibrate import ROUNDS, calibrate, sizes
from exporters.drift.features import Basis, Features, features, fit_basis, ratios
from exporters.drift.profile import Profile, ProfileError
from exporters.drift.summary import Context, decile_edges, judged, standard, summarise
from exporters.drift.vectors import Floats, check
from slo.signals import Drift

MOST_VECTORS = 6000
# Axes of fewer vectors than this times the dimension fit them better than new ones; then the axes come
# from a third and everything else from the others.
_WELL_DETERMINED = 40
_LEAST_WITHIN = 1e-3  # of the spread along an axis: clusters that are points would make everything a shift


def fit(
    raw: object, model: str, version: str, drift: Drift, *, seed: int = 7, rounds: int = ROUNDS,
    created: float | None = None,
) -> Profile:  # fmt: skip
    """
    Fit a profile to *raw* (see vectors.check); the same input and seed give the same profile.

    More than 6000 vectors are sampled down to that. Raises ProfileError when fewer than `min_samples` are
    usable, or when all of them are the same.
    """
    checked = check(raw)
    count = len(checked.vectors)
    if count < drift.min_samples:
        refused = ", ".join(f"{n} {reason}" for reason, n in sorted(checked.rejected.items())) or "none"
        raise ProfileError(
            f"{count} usable vectors (refused: {refused}); a profile needs at least {drift.min_samples}, "
            f"better four times drift.sample_size ({4 * drift.sample_size})"
        )
    order = np.random.default_rng(seed).permutation(count)[:MOST_VECTORS]
    vectors = checked.vectors[order]
    if not vectors.std(axis=0).any():
        raise ProfileError(f"all {count} vectors are the same; is the embedding server well?")
    split = vectors.shape[1] * _WELL_DETERMINED > len(vectors) and len(vectors) * 2 // 3 >= drift.min_samples
    axes = len(vectors) // 3
    kept = vectors[axes:] if split else vectors
    basis = fit_basis(vectors[:axes] if split else vectors, seed, kept)
    return _profile(
        basis, kept, count, (model, version), drift, seed, rounds, time.time() if created is None else created
    )


def _profile(
    basis: Basis,
    kept: Floats,
    count: int,
    who: tuple[str, str],
    drift: Drift,
    seed: int,
    rounds: int,
    created: float,
) -> Profile:
    of = features(basis, kept, remembered=True)
    context = _context(basis, of)
    pca = (drift.pca_ratio_change.components, drift.pca_ratio_change.judged, drift.pca_ratio_change.threshold)
    found = sizes(len(kept), drift.min_samples, drift.sample_size)
    return Profile(
        model=who[0],
        version=who[1],
        count=count,
        created=created,
        seed=seed,
        false_alarm_rate=drift.false_alarm_rate,
        pca=pca,
        basis=basis,
        context=context,
        vectors=kept,
        ratios=ratios(kept, pca[0]),
        summary=summarise(context, of),
        calibrations=tuple(
            calibrate(kept, of, context, size, drift.false_alarm_rate, pca, seed, rounds) for size in found
        ),
    )


def _context(basis: Basis, of: Features) -> Context:
    rest, length = ((float(values.mean()), _spread(values)) for values in (of.rest, of.length))
    columns = judged(of.z, standard(of.rest, rest), standard(of.length, length))
    edges = np.array([decile_edges(column) for column in columns.T])
    around = (of.z - basis.centres[of.nearest]).std(axis=0)
    return Context(edges, rest, length, basis, np.maximum(around, _LEAST_WITHIN))


def _spread(values: Floats) -> float:
    """Standard deviation; 0 where it is only rounding, as of the lengths of normalised vectors."""
    deviation, mean = float(values.std()), float(np.abs(values).mean())
    return deviation if deviation > 1e-4 * mean else 0.0
