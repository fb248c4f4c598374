"""Points with two figures each -> those that no other point beats in both: the Pareto front."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

Point = TypeVar("Point")
Better = Literal["lower", "higher"]


def front(
    points: Sequence[Point],
    first: Callable[[Point], float | None],
    second: Callable[[Point], float | None],
    *,
    first_better: Better = "lower",
    second_better: Better = "higher",
) -> list[Point]:
    """Points that are not dominated, ordered by their first figure, best first.

    A point dominates another when it is at least as good in both figures and better in one. Points with an
    unknown figure are never on the front. Of points equal in both figures all stay.
    """
    signs = (1 if first_better == "lower" else -1, 1 if second_better == "lower" else -1)
    known = []
    for point in points:
        x, y = first(point), second(point)
        if x is not None and y is not None:
            known.append((signs[0] * x, signs[1] * y, point))
    ordered = sorted(known, key=lambda entry: entry[:2])
    kept: list[Point] = []
    best = float("inf")
    best_at = float("inf")
    for x, y, point in ordered:
        if y < best or (y == best and x == best_at):
            kept.append(point)
            best, best_at = y, x
    return kept
