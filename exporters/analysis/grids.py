"""Windows -> a grid of cells that count them, and the largest region of cells that kept the promises."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Cell = tuple[int, int]


@dataclass(frozen=True)
class Mark:
    """One window placed by two values; *kept*: every promise held in it."""

    x: float
    y: float
    kept: bool


@dataclass(frozen=True)
class Grid:
    """Counts of windows by bin of x and of y; bounds are the lower bounds of the bins."""

    x_bounds: tuple[float, ...]
    y_bounds: tuple[float, ...]
    windows: dict[Cell, int]
    kept: dict[Cell, int]

    def cells(self) -> Iterable[Cell]:
        """Every cell, row by row from the lowest."""
        return ((x, y) for y in range(len(self.y_bounds)) for x in range(len(self.x_bounds)))


@dataclass(frozen=True)
class Region:
    """Cells that touch along an edge; *corner* is its lower-left one: lowest x, and there the lowest y."""

    cells: frozenset[Cell]
    windows: int

    @property
    def corner(self) -> Cell:
        """The lower-left cell."""
        return min(self.cells)


def fill(marks: Iterable[Mark], x_bounds: Sequence[float], y_bounds: Sequence[float]) -> Grid:
    """Count *marks* by cell; a value under the first bound is in the first bin."""
    grid = Grid(tuple(x_bounds), tuple(y_bounds), {}, {})
    for mark in marks:
        cell = (_bin(x_bounds, mark.x), _bin(y_bounds, mark.y))
        grid.windows[cell] = grid.windows.get(cell, 0) + 1
        grid.kept[cell] = grid.kept.get(cell, 0) + mark.kept
    return grid


def _bin(bounds: Sequence[float], value: float) -> int:
    return max(bisect_right(bounds, value) - 1, 0)


def best_region(grid: Grid, kept_ratio: float, min_windows: int) -> Region | None:
    """Return the largest contiguous region of good cells, None when no cell is good.

    Good: at least *min_windows* windows, and at least *kept_ratio* of them kept the promises. Largest: most
    cells, then most windows, then the lowest corner.
    """
    good = {
        cell
        for cell in grid.cells()
        if grid.windows.get(cell, 0) >= min_windows
        and grid.kept.get(cell, 0) >= kept_ratio * grid.windows[cell]
    }
    regions = []
    while good:
        cells = _connected(min(good), good)
        good -= cells
        regions.append(Region(frozenset(cells), sum(grid.windows[c] for c in cells)))
    regions.sort(key=lambda r: (-len(r.cells), -r.windows, r.corner))
    return regions[0] if regions else None


def _connected(start: Cell, among: set[Cell]) -> set[Cell]:
    found, to_visit = {start}, [start]
    while to_visit:
        x, y = to_visit.pop()
        for neighbour in ((x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)):
            if neighbour in among and neighbour not in found:
                found.add(neighbour)
                to_visit.append(neighbour)
    return found
