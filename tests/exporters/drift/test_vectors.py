"""What is a usable vector, and how others are counted."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from exporters.drift.vectors import check


def test_zero_nan_inf_and_empty_are_refused_by_reason(case: Callable[[str, str], Any]) -> None:
    """A63: of six vectors two are usable, their centroid is (½, ½, 0), and four reasons count one each."""
    raw = [
        [float(x) if isinstance(x, str) else x for x in vector]
        for vector in case("A63", "vectors")["vectors"]
    ]

    checked = check(raw)

    assert checked.vectors.mean(axis=0).tolist() == [0.5, 0.5, 0.0]
    assert dict(checked.rejected) == {"zero": 1, "nan": 1, "inf": 1, "empty": 1}


def test_a_ragged_batch_keeps_what_has_the_right_dimension(case: Callable[[str, str], Any]) -> None:
    """A62: two vectors of 8 numbers are used, the one of 12 is counted."""
    checked = check(case("A62", "mixed_batch")["vectors"], dimension=8)

    assert checked.vectors.shape == (2, 8)
    assert dict(checked.rejected) == {"dimension": 1}


def test_arrays_are_sorted_like_lists() -> None:
    """The same six rows as an array and as lists give the same vectors and the same counts."""
    rows = [[1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [np.nan, np.inf], [3.0, 4.0]]

    from_lists, from_array = check(rows), check(np.array(rows))

    assert from_lists.vectors.tolist() == from_array.vectors.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert dict(from_lists.rejected) == dict(from_array.rejected) == {"zero": 1, "nan": 2, "inf": 1}


def test_a_number_too_large_for_float32_is_infinite() -> None:
    """1e39 is a valid JSON number and no float32."""
    assert dict(check([[1e39, 1.0]]).rejected) == {"inf": 1}


@pytest.mark.parametrize("raw", [None, "text", 7, {"a": 1}, ["x"], [["a", "b"]], [[[1.0]]], [None]])
def test_anything_else_is_malformed(raw: object) -> None:
    """No input raises; what is no vector counts once."""
    checked = check(raw)

    assert len(checked.vectors) == 0
    assert dict(checked.rejected) == {"malformed": 1}


def test_one_flat_list_is_one_vector() -> None:
    """A batch of one may come without its outer list."""
    assert check([1.0, 2.0, 3.0]).vectors.shape == (1, 3)


def test_no_vectors_at_all_are_no_refusal() -> None:
    """An empty batch has nothing to count."""
    assert dict(check([]).rejected) == {}


def test_null_among_numbers_is_nan() -> None:
    """JSON has no NaN; encoders write null for it."""
    assert dict(check([[1, None]]).rejected) == {"nan": 1}


def test_without_a_wanted_dimension_most_vectors_decide() -> None:
    """A stray one in front does not make strangers of the others."""
    checked = check([[1.0] * 3, [1.0] * 2, [2.0] * 2])

    assert checked.vectors.tolist() == [[1.0, 1.0], [2.0, 2.0]]
    assert dict(checked.rejected) == {"dimension": 1}


def test_numbers_whose_squares_would_leave_float32_are_refused() -> None:
    """A million is taken, two millions are as good as infinite, in lists and in arrays."""
    rows = [[1e6, 1.0], [2e6, 1.0]]

    assert check(rows).vectors.tolist() == check(np.array(rows)).vectors.tolist() == [[1e6, 1.0]]
    assert dict(check(rows).rejected) == dict(check(np.array(rows)).rejected) == {"inf": 1}
