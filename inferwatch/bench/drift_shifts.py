"""Embeddings -> the reference and the windows that every detector is shown: healthy ones and seven kinds of change.

A change is mixed in at a share of the window, or applied at a size, small enough that not everything finds it.
All draws are seeded: every detector sees the same rows.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

Rows = np.ndarray
Change = Callable[[Rows, float, np.random.Generator], Rows]

# name -> what is done, the sizes at which, and the size that a stream has from the change on
Changes = Mapping[str, tuple[Change, tuple[float, ...], float]]

RAMP = (0.02, 0.05, 0.1, 0.2)  # shares of the window that came after the change: how late is it seen?
RAMP_WINDOWS = 5
ENTERED = "entered"


@dataclass(frozen=True)
class Task:
    """
    One reference with its windows: *healthy* (k, n, d) and, by change and size, *changed* (j, n, d); *vectors* are
    all healthy ones, the reference's among them.
    """

    name: str
    vectors: Rows
    reference: Rows
    healthy: Rows
    changed: Mapping[str, Rows]


def mixed_with(other: Rows) -> Change:
    """A share of the window comes from *other*."""

    def change(window: Rows, share: float, random: np.random.Generator) -> Rows:
        count = max(round(share * len(window)), 1)
        window[:count] = other[random.choice(len(other), count, replace=False)]
        return window

    return change


def noise(window: Rows, size: float, random: np.random.Generator) -> Rows:
    """Gaussian noise of *size* on every number, at unchanged length."""
    length = np.linalg.norm(window, axis=1, keepdims=True)
    noisy = window + random.standard_normal(window.shape) * size
    kept: Rows = noisy * length / np.linalg.norm(noisy, axis=1, keepdims=True)
    return kept


def flood(window: Rows, share: float, random: np.random.Generator) -> Rows:
    """A share of the window are copies of three of its vectors."""
    count = round(share * len(window))
    own = window[-3:].copy()
    window[:count] = own[random.integers(0, len(own), count)]
    return window


def turn(seed: int) -> Change:
    """All vectors turned by an angle in a hundred planes, always the same ones."""

    def change(window: Rows, degrees: float, _: np.random.Generator) -> Rows:
        d = window.shape[1]
        axes = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]
        along = window @ axes
        angle, planes = np.deg2rad(degrees), min(100, d // 2)
        a, b = along[:, :planes].copy(), along[:, planes : 2 * planes].copy()
        along[:, :planes] = a * np.cos(angle) - b * np.sin(angle)
        along[:, planes : 2 * planes] = a * np.sin(angle) + b * np.cos(angle)
        back: Rows = along @ axes.T
        return back

    return change


def _windows(pool: Rows, count: int, size: int, random: np.random.Generator) -> Iterator[Rows]:
    for _ in range(count):
        yield pool[random.choice(len(pool), size, replace=False)].copy()


def task(
    name: str, reference: Rows, pool: Rows, changes: Changes, size: int,
    healthy: int, changed: int, seed: int,
) -> Task:  # fmt: skip
    """Draw every window of one reference; *changes*: name -> what is done, at which sizes."""
    random = np.random.default_rng(seed)
    found: dict[str, Rows] = {}
    for label, (change, sizes, after) in changes.items():
        for amount in sizes:
            windows = [change(w, amount, random) for w in _windows(pool, changed, size, random)]
            found[f"{label} {amount:g}"] = np.array(windows, np.float32)
        for share in RAMP:
            windows = [
                _entered(w, change, after, share, random) for w in _windows(pool, RAMP_WINDOWS, size, random)
            ]
            found[f"{label} {ENTERED} {share:g}"] = np.array(windows, np.float32)
    kept = np.array(list(_windows(pool, healthy, size, random)), np.float32)
    vectors = np.concatenate([reference, pool]).astype(np.float32)
    return Task(name, vectors, reference.astype(np.float32), kept, found)


def _entered(window: Rows, change: Change, amount: float, share: float, random: np.random.Generator) -> Rows:
    """A window of which a share came after the change."""
    count = round(share * len(window))
    window[:count] = change(window[:count].copy(), amount, random)
    return window


def real(embeddings: Mapping[str, Rows], healthy: int, changed: int, size: int = 500) -> list[Task]:
    """Film reviews as the healthy traffic, and interface messages for the language; 384 dimensions."""
    movies, back = embeddings["movies"], len(embeddings["truncated"])
    pool = movies[2000:-back]
    kept = np.concatenate([pool, movies[-back:]])
    films = task(
        "film reviews", movies[:2000], kept,
        {
            "topic shift": (mixed_with(embeddings["amazon"]), (0.05, 0.1), 1.0),
            "truncated inputs": (mixed_with(embeddings["truncated"]), (0.1, 0.2), 1.0),
            "model version swap": (mixed_with(embeddings["v2"]), (0.05, 1.0), 1.0),
            "noise": (noise, (0.005, 0.01), 0.05),
            "duplicate flood": (flood, (0.05, 0.1), 1.0),
            "slow rotation": (turn(5), (5, 10), 45.0),
        },
        size, healthy, changed, seed=11,
    )  # fmt: skip
    english, german = embeddings["english"], embeddings["german"]
    half = len(english) * 11 // 20
    messages = task(
        "interface messages", english[:half], english[half:],
        {"language shift": (mixed_with(german[half:]), (0.05, 0.1), 1.0)}, min(200, size), healthy, changed, seed=12,
    )  # fmt: skip
    return [films, messages]


def synthetic(healthy: int, changed: int, size: int = 500, dimension: int = 128) -> list[Task]:
    """Ten clusters with a falling spectrum; the changes have known sizes."""
    fixed = np.random.default_rng(3)
    axes, _ = np.linalg.qr(fixed.standard_normal((dimension, dimension)))
    spread = 1 / np.sqrt(1 + np.arange(dimension))
    centres = fixed.standard_normal((11, dimension)) * spread * 1.5

    def points(count: int, seed: int, clusters: int = 10) -> Rows:
        random = np.random.default_rng(seed)
        of = random.integers(0, 10, count) if clusters == 10 else np.full(count, 10)
        found: Rows = (centres[of] + random.standard_normal((count, dimension)) * spread) @ axes.T
        return found

    def moved(window: Rows, size: float, _: np.random.Generator) -> Rows:
        found: Rows = window + size * spread[2] * axes[:, 2]
        return found

    changes: Changes = {
        "new cluster": (mixed_with(points(2000, 6, clusters=1)), (0.05, 0.1), 1.0),
        "mean shift": (moved, (0.2, 0.4), 1.0),
        "noise": (noise, (0.05, 0.1), 0.3),
        "duplicate flood": (flood, (0.05, 0.1), 1.0),
        "slow rotation": (turn(5), (5, 10), 45.0),
    }
    return [
        task("ten clusters", points(2000, 1), points(20_000, 2), changes, size, healthy, changed, seed=13)
    ]
