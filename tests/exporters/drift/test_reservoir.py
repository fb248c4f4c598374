"""The sample is even over the window, bounded, and never older than it."""

import numpy as np

from exporters.drift.reservoir import Reservoir


def numbered(first: int, count: int) -> np.ndarray:
    """Vectors of one number each: first, first + 1, …"""
    return np.arange(first, first + count, dtype=np.float32)[:, None]


def test_everything_is_kept_while_it_fits() -> None:
    """Ten vectors in a reservoir of ten: all of them, in their order."""
    reservoir = Reservoir(1, 10, 60, 6, seed=1)
    reservoir.add(numbered(0, 4), 0)
    reservoir.add(numbered(4, 6), 25)

    assert reservoir.sample(30).ravel().tolist() == list(range(10))
    assert reservoir.seen(30) == 10


def test_what_left_the_window_is_gone() -> None:
    """Window 60 s in six slices: what came at 0 s is there at 59 s and not at 60 s, nor held any more."""
    reservoir = Reservoir(1, 10, 60, 6, seed=1)
    reservoir.add(numbered(0, 5), 0)

    assert len(reservoir.sample(59)) == 5
    assert len(reservoir.sample(60)) == 0
    assert reservoir.held_bytes == 0


def test_busy_and_quiet_minutes_are_sampled_alike() -> None:
    """A tenth of the vectors came in a quiet slice; about a tenth of the samples are from there."""
    shares = []
    for seed in range(200):
        reservoir = Reservoir(1, 50, 60, 6, seed)
        reservoir.add(numbered(0, 100), 5)
        for second in (15, 25, 35):
            reservoir.add(numbered(1000, 300), second)
        shares.append(float((reservoir.sample(40) < 1000).mean()))

    # 200 samples of 50 at a share of 0.1: the standard error is 0.003.
    assert abs(np.mean(shares) - 0.1) < 0.012


def test_memory_is_bounded_and_falls_as_newer_ones_win() -> None:
    """100 000 vectors in 15 slices, sample of 100: about 100 × (1 + ln 1000) = 790 are held, not 1500."""
    reservoir = Reservoir(1, 100, 150, 15, seed=3)
    for second in range(150):
        reservoir.add(numbered(second * 667, 667), second)

    held = reservoir.held_bytes // 4
    assert len(reservoir.sample(149)) == 100
    assert 100 <= held <= 1000
    assert reservoir.seen(149) == 667 * 150


def test_the_same_seed_gives_the_same_sample() -> None:
    """Two runs over the same stream keep the same vectors."""
    samples = []
    for _ in range(2):
        reservoir = Reservoir(1, 20, 60, 6, seed=9)
        for second in range(50):
            reservoir.add(numbered(second * 10, 10), second)
        samples.append(reservoir.sample(50).tolist())

    assert samples[0] == samples[1]
