"""Synthetic embeddings and the reference that is fitted to them: what theory says of shares must hold on these vectors."""

import numpy as np
import pytest

from exporters.drift.judge import judge
from exporters.drift.profile import Profile, load
from exporters.drift.streams import Key, Limits, Streams
from exporters.drift.vectors import Batch
from inferwatch.scenarios import drift_stage
from inferwatch.scenarios.drift_shape import MODEL
from inferwatch.scenarios.drift_vectors import HEALTHY_SEED, Space, unusable
from inferwatch.stack.settings import default_settings
from slo import spec as slo_spec


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    """The stage's own profile, as its exporters read it."""
    own = default_settings(run_dir=tmp_path_factory.mktemp("drift"))
    drift_stage.fit_reference(slo_spec.load(), own)
    return load(drift_stage.reference_file(own))


def test_vectors_are_unit_vectors_and_the_same_for_the_same_seed() -> None:
    """64 numbers each, of length 1."""
    first, second = (Space().vectors(np.random.default_rng(1), 50, 0.3) for _ in range(2))
    assert first.shape == (50, 64)
    assert np.linalg.norm(first, axis=1) == pytest.approx(np.ones(50), abs=1e-6)
    assert (first == second).all()


def test_other_topics_are_somewhere_else() -> None:
    """Their mean is further from that of the usual topics than two samples of those are from one another."""
    usual, again, others = (
        Space().vectors(np.random.default_rng(n), 2000, shifted).mean(axis=0)
        for n, shifted in ((1, 0.0), (2, 0.0), (3, 1.0))
    )
    assert np.linalg.norm(usual - again) < 0.1
    assert np.linalg.norm(usual - others) > 0.2


def test_unusable_vectors_are_nan_and_zero_in_turn() -> None:
    """Of five three are NaN and two zero; none is an empty batch that fits beside others."""
    made = unusable(5)
    assert np.isnan(made).all(axis=1).tolist() == [True, False, True, False, True]
    assert not made[1::2].any()
    assert unusable(0).shape == (0, 64)


def test_windows_of_every_size_are_calibrated(reference: Profile) -> None:
    """From the fewest that are judged to the shipped sample."""
    assert [one.size for one in reference.calibrations] == [200, 300, 450, 675, 1000]
    assert reference.dimension == 64


@pytest.mark.parametrize("count", [250, 1000])
def test_a_tenth_about_other_topics_is_drift(reference: Profile, count: int) -> None:
    """In a window that hardly suffices, and in a full one, whichever vectors came."""
    drift = slo_spec.load().drift
    for seed in range(10):
        vectors = Space().vectors(np.random.default_rng(seed), count, 0.1)
        verdict = judge(reference, vectors, drift)
        assert verdict.state == "yes", (seed, verdict.ratio)


def test_other_topics_are_no_other_model(reference: Profile) -> None:
    """A window of nothing else is drift, and its space is still the reference's."""
    verdict = judge(reference, Space().vectors(np.random.default_rng(1), 1000, 1.0), slo_spec.load().drift)
    assert verdict.state == "yes"
    assert verdict.likeness is not None
    assert verdict.likeness > 0.5


def test_what_services_send_in_good_health_is_no_drift_for_a_whole_run(reference: Profile) -> None:
    """15 a second for 15 minutes through the exporter's own windows, judged every 4 s."""
    seconds = 0.0
    streams = Streams(slo_spec.load().drift, {"reference": reference}, Limits(), clock=lambda: seconds)
    space, random = Space(), np.random.default_rng(HEALTHY_SEED)
    states = []
    for second in range(900):
        seconds = float(second)
        streams.offer(Batch(MODEL, "", "", space.vectors(random, 15)), "post")
        if second % 4 == 3:
            streams.evaluate(Key(MODEL, "", ""))
            (stream,) = streams.streams.values()
            assert stream.verdict is not None
            states.append(stream.verdict.state)
    assert states == ["insufficient"] * 3 + ["no"] * 222


def test_healthy_vectors_are_no_drift(reference: Profile) -> None:
    """Of 60 windows one or two may be called drift at the shipped rate of 0.01; six would be another rate."""
    drift = slo_spec.load().drift
    states = [
        judge(reference, Space().vectors(np.random.default_rng(1000 + seed), 1000), drift).state
        for seed in range(60)
    ]
    assert states.count("no") >= 55
    assert set(states) <= {"no", "yes"}
