"""A window's sample against a profile -> the stream's state, with every score and its threshold."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from exporters.drift.calibrate import Calibration, evidence, fitting
from exporters.drift.features import Features, features, likeness, ratios
from exporters.drift.profile import Profile
from exporters.drift.scores import EVIDENCE, JUDGED, PCA_RATIO, pca_ratio_change, scores
from exporters.drift.summary import neighbour_quantiles, summarise
from exporters.drift.vectors import Floats
from slo.signals import Drift

State = Literal["no", "yes", "insufficient", "no_reference", "swapped"]
SwapReason = Literal["model", "version", "dimension", "space"]
ANY = "any"


@dataclass(frozen=True)
class Verdict:
    """
    What is known of a stream.

    *ratio*: how near the worst score is to its threshold, which is at 1, by the logarithm of its rarity among
    healthy windows; *swap*: why it is another model's, with what the reference
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
    reference, summary = profile.summary, summarise(profile.context, window)
    alike = likeness(reference.logs, summary.logs)
    if alike is not None and alike < drift.swap_likeness:
        detail = f"the space has nothing in common with the reference's (likeness {alike:.2f}): another model speaks"
        return Verdict("swapped", likeness=alike, swap="space", detail=detail)
    curve = neighbour_quantiles(profile.basis.scale, window)
    found = scores(profile.basis, reference, summary, calibration.neighbours, curve)
    found[EVIDENCE] = float(evidence(np.array(list(found.values())), calibration.medians, calibration.units))
    _, judged, limit = profile.pca
    found[PCA_RATIO] = pca_ratio_change(profile.ratios, ratios(sample, judged), judged)
    if wrong := [name for name, score in found.items() if not math.isfinite(score)]:
        return Verdict("insufficient", detail=f"no finite number for {', '.join(wrong)}: nothing can be said")
    thresholds = {**dict(zip(JUDGED, map(float, calibration.thresholds), strict=True)), PCA_RATIO: limit}
    ratio = max(_ratio(calibration, found), found[PCA_RATIO] / max(limit, 1e-12))
    edge = drift.exit_ratio if before == "yes" else 1.0
    return Verdict(
        "yes" if ratio > edge else "no",
        found,
        thresholds,
        dict(zip((*JUDGED, ANY, PCA_RATIO), map(float, calibration.false_alarms), strict=True)),
        ratio,
        alike,
    )


def _ratio(calibration: Calibration, found: Mapping[str, float]) -> float:
    """How far the worst detector is on the way from its base to its threshold, at 1 there."""
    values = np.array([found[name] for name in JUDGED])
    way = np.maximum(calibration.thresholds - calibration.bases, 1e-12)
    return max(float(((values - calibration.bases) / way).max()), 0.0)


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
