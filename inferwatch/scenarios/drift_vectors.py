"""A seed -> synthetic embeddings: unit vectors around the topics of one model's space, or around other topics in it."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

DIMENSION = 64
TOPICS = 6
WITHIN = 0.7
"""Spread within a topic, of that between topics."""
SPACE_SEED = 20261129
HEALTHY_SEED = 0
"""Of what every service sends, in every run: the first of 0, 1, 2, … whose windows are healthy to the detectors for a whole
run. At the shipped rate of false alarms, one window in a hundred, six of the next twenty are called drift at some time
within it, which is no fault of anything, and would be a failure of a row."""


class Space:
    """
    The space of one model. It spreads whatever it is given more along some directions than along others, as models do,
    so that another topic is no other model.
    """

    def __init__(self, seed: int = SPACE_SEED) -> None:
        random = np.random.default_rng(seed)
        self._axes = np.linalg.qr(random.standard_normal((DIMENSION, DIMENSION)))[0]
        self._spread = (1.0 + np.arange(DIMENSION)) ** -0.5
        self._topics = [random.standard_normal((TOPICS, DIMENSION)) * self._spread for _ in range(2)]

    def vectors(self, random: np.random.Generator, count: int, shifted: float = 0.0) -> Floats:
        """Return (count, 64) unit vectors, of which about the share *shifted* are about the other topics."""
        others = random.random(count) < shifted
        topics = np.where(
            others[:, None], *(kind[random.integers(0, TOPICS, count)] for kind in reversed(self._topics))
        )
        found = (topics + WITHIN * self._spread * random.standard_normal((count, DIMENSION))) @ self._axes
        return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def unusable(count: int) -> Floats:
    """Return (count, 64) of NaN and zero in turn."""
    made = np.zeros((count, DIMENSION), np.float32)
    made[::2] = np.nan
    return made
