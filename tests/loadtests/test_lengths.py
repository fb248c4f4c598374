"""Token-count distributions: what the text means, and what is refused."""

import random

import pytest

from loadtests.lengths import Lengths


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("7", 7, 7),
        ("uniform:3:5", 3, 5),
        ("lognormal:100:0.5:150", 1, 150),
        ("choice:2,4", 2, 4),
        ("1048576", 1048576, 1048576),
        ("choice:7,10000000", 7, 10000000),
    ],
)
def test_draws_stay_in_range_and_text_round_trips(text: str, low: int, high: int) -> None:
    """Every draw is a whole number in the range; both ends of a range are reached; text → lengths → text."""
    lengths, rng = Lengths.parse(text), random.Random(0)
    drawn = [lengths.draw(rng) for _ in range(500)]

    assert low <= min(drawn) <= max(drawn) == high
    assert all(isinstance(draw, int) for draw in drawn)
    assert text == str(lengths)


def test_lognormal_median() -> None:
    """About half of the draws lie under the median."""
    lengths, rng = Lengths.parse("lognormal:200:0.6:100000"), random.Random(0)

    assert 900 < sum(lengths.draw(rng) < 200 for _ in range(2000)) < 1100


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0",
        "-3",
        "x",
        "uniform:5:3",
        "uniform:5",
        "lognormal:9:1:3",
        "choice:",
        "choice:1,0",
        "zipf:1:2",
        "10000001",
        "uniform:1:99999999",
        "lognormal:200:1:1e12",
    ],
)
def test_what_makes_no_sense_is_refused(text: str) -> None:
    """The error shows the text and how to write it."""
    with pytest.raises(ValueError, match="lengths"):
        Lengths.parse(text)


def test_the_error_shows_the_number_that_was_given() -> None:
    """One over the limit is not shown as the limit itself."""
    with pytest.raises(ValueError, match="lengths 10000001: counts end at 10000000"):
        Lengths.parse("10000001")
