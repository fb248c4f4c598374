"""A window's sample against a profile -> the stream's state, with every score and its threshold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from exporters.drift.calibrate import Calibration, fitting
from exporters.drift.features import Features, features, likeness, ratios, spread_logs
from exporters.drift.profile import Profile
from exporters.drift.scores import DETECTORS, PCA_RATIO, pca_ratio_change
from exporters.drift.vectors import Floats
from slo.signals import Drift

State = Literal["no", "yes", "insufficient", "no_reference", "swapped"]
SwapReason = Literal["model", "version", "dimension", "space"]
ANY = "any"


@dataclass(frozen=True)
class Verdict:
    """
    What is known of a stream.

    *ratio*: the worst score over its threshold; *swap*: why it is another model's, with what the reference
    is of; scores are absent, never 0, while there is nothing to judge or nothing to hold it against.
    """

    state: State
    scores: Mapping[str, float] = field(default_factory=dict)
    thresholds: Mapping[str, float] = field(default_factory=dict)
    false_alarms: Mapping[str, float] = field(default_factory=dict)
    ratio: float | None = None
    likeness: float | None = None
    swap: SwapReason | None = None
    detail: str = ""


def judge(profile: Profile, sample: Floats, drift: Drift, before: State | None = None) -> Verdict:
    """
    Judge *sample* (n, d) of the profile's own dimension.

    *before* is the stream's last state: drift that was there ends only under exit_ratio of the threshold.
    """
    calibration = fitting(profile.calibrations, len(sample))
    if len(sample) < drift.min_samples or calibration is None:
        return Verdict("insufficient", detail=f"{len(sample)} vectors of at least {drift.min_samples}")
    window = _window(profile, sample, calibration)
    alike = likeness(*(spread_logs(of.z, profile.basis.scale) for of in (profile.features, window)))
    if alike is not None and alike < drift.swap_likeness:
        detail = f"the space has nothing in common with the reference's (likeness {alike:.2f}): another model speaks"
        return Verdict("swapped", likeness=alike, swap="space", detail=detail)
    context = replace(profile.context, neighbours=calibration.neighbours)
    scores = {name: score(context, profile.features, window) for name, score in DETECTORS.items()}
    components, judged, limit = profile.pca
    scores[PCA_RATIO] = pca_ratio_change(profile.ratios, ratios(sample, components), judged)
    if wrong := [name for name, score in scores.items() if not math.isfinite(score)]:
        return Verdict("insufficient", detail=f"no finite number for {', '.join(wrong)}: nothing can be said")
    thresholds = {**dict(zip(DETECTORS, map(float, calibration.thresholds), strict=True)), PCA_RATIO: limit}
    ratio = max(scores[name] / max(thresholds[name], 1e-12) for name in thresholds)
    edge = drift.exit_ratio if before == "yes" else 1.0
    return Verdict(
        "yes" if ratio > edge else "no",
        scores,
        thresholds,
        dict(zip((*DETECTORS, ANY, PCA_RATIO), map(float, calibration.false_alarms), strict=True)),
        ratio,
        alike,
    )


def _window(profile: Profile, sample: Floats, calibration: Calibration) -> Features:
    """As many vectors as the thresholds were made for, always the same ones of a sample."""
    at = np.random.default_rng(profile.seed).permutation(len(sample))[: calibration.size]
    return features(profile.basis, sample[np.sort(at)])


def compatible(
    profiles: Mapping[str, Profile], model: str, version: str, dimension: int
) -> Profile | Verdict:
    """
    The profile that a stream is held against, or why there is none.

    A version that either side does not state is not held against the other. Without a profile of the model the
    stream is `swapped` where there are profiles of others, else `no_reference`.
    """
    same = [one for one in profiles.values() if one.model == model]
    if not same and not profiles:
        return Verdict(
            "no_reference", detail="no reference profile is loaded; make one: inferwatch drift fit"
        )
    if not same:
        known = ", ".join(sorted(repr(one.model) for one in profiles.values()))
        return Verdict("swapped", swap="model", detail=f"model {model!r} is new, references are of {known}")
    right = [one for one in same if not version or not one.version or one.version == version]
    if not right:
        known = ", ".join(sorted(repr(one.version) for one in same))
        return Verdict(
            "swapped", swap="version", detail=f"version {version!r} is new, references are of {known}"
        )
    for profile in right:
        if profile.dimension == dimension:
            return profile
    detail = f"reference incompatible: {right[0].dimension} vs {dimension}; a new baseline is needed"
    return Verdict("swapped", swap="dimension", detail=detail)
