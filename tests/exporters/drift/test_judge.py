"""States: enough vectors, drift, another model; and the field failures A62 and A64."""

from collections.abc import Callable
from typing import Any

import numpy as np

from exporters.drift.fit import fit
from exporters.drift.judge import Verdict, compatible, judge
from exporters.drift.profile import Profile
from slo import spec
from slo.signals import Drift

Make = Callable[..., np.ndarray]


def test_same_shifted_tiny_and_huge_samples(case: Callable[[str, str], Any]) -> None:
    """A64, with the shipped numbers: same is no drift, 1 sd in one coordinate is, 8 vectors are too few."""
    shipped = spec.load().drift
    profile = fit(case("A64", "reference_200"), "m", "", shipped, rounds=120)

    def verdict(name: str) -> Verdict:
        return judge(profile, np.array(case("A64", name), np.float32), shipped)

    assert verdict("current_same_200").state == "no"
    assert verdict("current_shifted_200").state == "yes"
    assert verdict("current_8").state == "insufficient"
    assert dict(verdict("current_8").scores) == {}
    assert verdict("current_shifted_200") == verdict("current_shifted_200")


def test_a_negligible_shift_in_a_huge_stream_is_no_drift(case: Callable[[str, str], Any]) -> None:
    """A64: 0.01 sd between 500 000 vectors each has p = 6e-7; the judged sample does not grow with them."""
    huge = case("A64", "huge_case")
    shipped = spec.load().drift
    random = np.random.default_rng(0)
    profile = fit(random.standard_normal((3000, 4)), "m", "", shipped, rounds=40)
    drifted = 0
    for _ in range(10):
        stream = random.standard_normal((50_000, 4)).astype(np.float32)
        stream[:, 0] += huge["mean_shift_in_sd"]
        drifted += (
            judge(profile, stream[random.choice(50_000, shipped.sample_size, replace=False)], shipped).state
            == "yes"
        )

    assert drifted <= 1


def test_another_dimension_is_incompatible_and_has_no_score(
    case: Callable[[str, str], Any], drift: Drift
) -> None:
    """A62: 8 numbers in the reference and 12 in the stream: no score, and the text says both."""
    reference = case("A62", "reference")
    vectors = np.random.default_rng(0).standard_normal((200, reference["dim"]))
    profiles = {"a": fit(vectors, reference["model"], "", drift, rounds=20)}
    current = case("A62", "current")

    by_dimension = compatible(profiles, reference["model"], "", current["dim"])
    by_model = compatible(profiles, current["model"], "", current["dim"])

    assert isinstance(by_dimension, Verdict)
    assert isinstance(by_model, Verdict)
    assert (by_dimension.state, by_dimension.swap) == ("swapped", "dimension")
    assert "reference incompatible: 8 vs 12" in by_dimension.detail
    assert (by_model.state, by_model.swap, dict(by_model.scores)) == ("swapped", "model", {})


def test_versions_differ_only_where_both_are_stated(profile: Profile) -> None:
    """Version 2 is not version 1; a stream that does not say its version is not held against it."""
    other = compatible({"a": profile}, "embed-a", "2", profile.dimension)

    assert isinstance(other, Verdict)
    assert other.swap == "version"
    assert compatible({"a": profile}, "embed-a", "", profile.dimension) is profile


def test_without_any_reference_nothing_is_said() -> None:
    """No profile: a state of its own, with the mend."""
    verdict = compatible({}, "embed-a", "", 8)

    assert isinstance(verdict, Verdict)
    assert verdict.state == "no_reference"
    assert "inferwatch drift fit" in verdict.detail


def test_healthy_windows_alarm_about_as_often_as_stated(profile: Profile, make: Make, drift: Drift) -> None:
    """60 fresh healthy windows at a stated rate of 1 %: over 6 would have a chance under one in a million."""
    assert sum(judge(profile, make(300, 1000 + i), drift).state == "yes" for i in range(60)) <= 6


def test_each_kind_of_change_is_drift(profile: Profile, make: Make, drift: Drift) -> None:
    """A shift of the mean, a rotation of two axes, a new cluster, copies, noise: all of them."""
    healthy = make(300, 7)
    random = np.random.default_rng(3)
    rotated = healthy.copy()
    angle = np.pi / 4
    rotated[:, :2] = healthy[:, :2] @ np.array(
        [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    )
    cluster = healthy.copy()
    cluster[:60] = healthy[0] + 3 + random.standard_normal((60, 24)) * 0.1
    copies = healthy.copy()
    copies[:100] = healthy[:10].repeat(10, axis=0)

    for name, window in {
        "shift": make(300, 7, shift=1.0),
        "rotation": rotated,
        "cluster": cluster,
        "copies": copies,
        "noise": healthy + random.standard_normal(healthy.shape) * 0.3,
    }.items():
        assert judge(profile, window.astype(np.float32), drift).state == "yes", name


def test_another_space_is_a_swap_and_not_drift(drift: Drift) -> None:
    """The same vectors turned at random in 400 dimensions: the model is another one under the same name."""
    random = np.random.default_rng(8)
    spread = 1 / (1 + np.arange(400))

    def points(n: int) -> np.ndarray:
        return (random.standard_normal((n, 400)) * spread).astype(np.float32)

    profile = fit(points(1200), "m", "", drift, rounds=20)
    turn, _ = np.linalg.qr(random.standard_normal((400, 400)))
    verdict = judge(profile, points(300) @ turn.astype(np.float32), drift)

    assert (verdict.state, verdict.swap, dict(verdict.scores)) == ("swapped", "space", {})


def test_drift_ends_only_well_under_the_threshold(profile: Profile, make: Make, drift: Drift) -> None:
    """A ratio between exit_ratio and 1 keeps what was there before: yes stays yes, no stays no."""
    window = next(
        w
        for w in (make(300, s, shift=0.3) for s in range(200))
        if 0.86 < (judge(profile, w, drift).ratio or 0) < 0.99
    )

    assert judge(profile, window, drift, before="no").state == "no"
    assert judge(profile, window, drift, before="yes").state == "yes"


def test_absurdly_large_vectors_give_finite_scores(profile: Profile, make: Make, drift: Drift) -> None:
    """A tenth of the window a million times as long: drift, and every score can be shown."""
    window = make(300, 9)
    window[:30] *= 1e5

    verdict = judge(profile, window, drift)

    assert verdict.state == "yes"
    assert all(np.isfinite(list(verdict.scores.values())))
