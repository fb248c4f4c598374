"""Vectors of no use are refused by reason, before an index or a metric meets them."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rag.vectors import BadVector, usable

CASES = Path(__file__).parents[1] / "fixtures" / "rag" / "a63_vectors.json"


def test_two_of_six_are_of_use():
    """Zero, NaN, infinity and nothing are each refused by name; the centroid of the rest is (0.5, 0.5, 0)."""
    kept, reasons = [], Counter()
    for numbers in json.loads(CASES.read_text())["vectors"]:
        try:
            kept.append(usable(np.array([float(one) for one in numbers], np.float32), 3))
        except BadVector as error:
            reasons[error.reason] += 1
    assert np.mean(kept, axis=0).tolist() == [0.5, 0.5, 0.0]
    assert reasons == {"zero": 1, "nan": 1, "inf": 1, "empty": 1}


def test_another_dimension_says_that_the_index_must_be_built_anew():
    """12 numbers against an index of 8: named, with what to do."""
    with pytest.raises(
        BadVector, match=r"gave 12 numbers and the index holds vectors of 8.*built anew"
    ) as caught:
        usable(np.ones(12, np.float32), 8)
    assert caught.value.error_type == "vector_dimension"


def test_length_becomes_one():
    """(3, 4) has length 5."""
    assert usable(np.array([3, 4], np.float32), 2).tolist() == pytest.approx([0.6, 0.8])
