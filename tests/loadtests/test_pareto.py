"""Pareto fronts drawn by hand."""

from loadtests.pareto import front

Pair = tuple[float | None, float | None]


def _front(points: list[Pair], **better: str) -> list[Pair]:
    return front(points, lambda p: p[0], lambda p: p[1], **better)  # type: ignore[arg-type] # "lower" or "higher"


def test_dominated_points_are_left_out() -> None:
    """(latency, throughput): (3, 4) is beaten by (2, 5); (9, 9) is slow but nothing gives more."""
    assert _front([(3, 4), (2, 5), (1, 2), (9, 9), (9, 8)]) == [(1, 2), (2, 5), (9, 9)]


def test_equal_points_stay_and_worse_ties_go() -> None:
    """Twice the same point are two choices; the same latency with less throughput is none."""
    assert _front([(1, 2), (1, 2), (1, 1), (2, 2)]) == [(1, 2), (1, 2)]


def test_unknown_figures_are_never_on_the_front() -> None:
    """A point that was not measured cannot win."""
    assert _front([(None, 9), (1, None), (2, 2)]) == [(2, 2)]
    assert _front([]) == []


def test_both_higher_is_better() -> None:
    """(quality, speed): both are wanted high; best first figure comes first."""
    assert _front([(0.9, 1), (0.8, 5), (0.7, 4)], first_better="higher") == [(0.9, 1), (0.8, 5)]
