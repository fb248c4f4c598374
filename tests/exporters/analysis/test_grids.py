"""Windows in cells, and the best region, worked out by hand."""

from exporters.analysis.grids import Grid, Mark, best_region, fill


def test_a_window_falls_into_the_bin_that_begins_at_or_under_it() -> None:
    """Bins from 0, 2 and 8: 2 is in the second, 7.9 too, 100 in the last."""
    marks = [Mark(2, 0, True), Mark(7.9, 0, False), Mark(100, 1, True), Mark(0, 0, True)]
    grid = fill(marks, [0, 2, 8], [0, 1])
    assert grid.windows == {(1, 0): 2, (2, 1): 1, (0, 0): 1}
    assert grid.kept == {(1, 0): 1, (2, 1): 1, (0, 0): 1}


def grid(rows: list[str], windows: int = 20) -> Grid:
    """A drawing, top row first: digits are tenths of *windows* that kept the promises, X all, . never seen."""
    seen, kept = {}, {}
    for y, row in enumerate(reversed(rows)):
        for x, mark in enumerate(row):
            if mark != ".":
                seen[x, y] = windows
                kept[x, y] = windows if mark == "X" else windows * int(mark) // 10
    bounds = tuple(float(i) for i in range(max(len(rows), len(rows[0]))))
    return Grid(bounds[: len(rows[0])], bounds[: len(rows)], seen, kept)


def test_the_largest_connected_region_wins() -> None:
    """Five cells on the left against three on the right; a corner does not connect."""
    found = best_region(grid(["XX.X", "X5.X", "XX9X"]), 0.95, 5)
    assert found is not None
    assert found.cells == {(0, 0), (1, 0), (0, 1), (0, 2), (1, 2)}
    assert found.windows == 100
    assert found.corner == (0, 0)


def test_a_corner_alone_does_not_connect() -> None:
    """Two diagonal cells are two regions; with equal size and weight the lower left one is taken."""
    found = best_region(grid([".X", "X."]), 0.95, 5)
    assert found is not None
    assert found.cells == {(0, 0)}


def test_the_corner_is_the_lowest_rate_and_there_the_lowest_batch() -> None:
    """The region's leftmost column begins one row up."""
    found = best_region(grid(["XXX", "XXX", ".XX"]), 0.95, 5)
    assert found is not None
    assert found.corner == (0, 1)


def test_ninety_five_percent_is_enough_and_ninety_is_not() -> None:
    """19 of 20 windows is 95 %."""
    one = Grid((0.0,), (0.0,), {(0, 0): 20}, {(0, 0): 19})
    assert best_region(one, 0.95, 5) is not None
    assert best_region(Grid((0.0,), (0.0,), {(0, 0): 20}, {(0, 0): 18}), 0.95, 5) is None


def test_few_windows_decide_nothing() -> None:
    """Four good windows where five are asked for."""
    assert best_region(grid(["X"], windows=4), 0.95, 5) is None
    assert best_region(grid(["X"], windows=5), 0.95, 5) is not None
