"""Small streams with known answers, and one profile that the tests share."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from exporters.drift.fit import fit
from exporters.drift.profile import Profile
from slo import spec
from slo.signals import Drift

FIXTURES = Path(__file__).parents[2] / "fixtures" / "drift"
DIMENSION = 24
Case = Callable[[str, str], Any]
Make = Callable[..., np.ndarray]


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Small matrices are slower on several threads, above all where cores are shared."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def case() -> Case:
    """Read a file of a field failure: case("A62", "reference")."""
    return lambda name, file: json.loads((FIXTURES / name / f"{file}.json").read_text())


@pytest.fixture(scope="session")
def drift() -> Drift:
    """The shipped numbers with smaller samples, so that tests are quick."""
    return spec.load().drift.model_copy(update={"sample_size": 300, "min_samples": 100})


@pytest.fixture(scope="session")
def make() -> Make:
    """make(n, seed): n vectors of 24 numbers around three centres, spread less from axis to axis."""

    def vectors(n: int, seed: int, shift: float = 0.0) -> np.ndarray:
        random = np.random.default_rng(seed)
        fixed = np.random.default_rng(99)
        turn, _ = np.linalg.qr(fixed.standard_normal((DIMENSION, DIMENSION)))
        centres = fixed.standard_normal((3, DIMENSION)) * 1.5
        spread = 1 / np.sqrt(1 + np.arange(DIMENSION))
        points = random.standard_normal((n, DIMENSION)) * spread
        points[:, 3] += shift * spread[3]
        return (centres[random.integers(0, 3, n)] + points @ turn.T).astype(np.float32)

    return vectors


@pytest.fixture(scope="session")
def profile(make: Make, drift: Drift) -> Profile:
    """A profile of 1200 healthy vectors of `make`."""
    return fit(make(1200, 1), "embed-a", "1", drift, rounds=240, created=1_750_000_000.0)
