"""Burn-rate arithmetic: factor, threshold, and how long theory needs until a window fires."""

from slo.objectives import Budget, BurnWindow


def factor(window: BurnWindow, period_days: int) -> float:
    """Return the burn rate that spends *budget_percent* of the period's budget in the long window.

    1 means the budget lasts exactly the period (2 % in 1 h of 30 d: 14.4).
    """
    return window.budget_percent / 100 * period_days * 86_400 / window.long


def error_ratio_threshold(window: BurnWindow, period_days: int, objective: float) -> float:
    """Return the error ratio (0..1) above which the window burns too fast."""
    return factor(window, period_days) * (1 - objective)


def reachable(window: BurnWindow, period_days: int, objective: float) -> bool:
    """Whether total failure can fire this window at all (a loose objective can put it above 1)."""
    return error_ratio_threshold(window, period_days, objective) < 1


def seconds_to_cross(
    window: BurnWindow, period_days: int, objective: float, error_ratio: float
) -> float | None:
    """Return seconds from a clean history until the long window crosses, at a constant error ratio.

    None when that ratio never crosses. Before evaluation interval and grouping are added.
    """
    threshold = error_ratio_threshold(window, period_days, objective)
    if error_ratio <= threshold:
        return None
    return threshold / error_ratio * window.long


def window_lengths(budget: Budget) -> list[int]:
    """Return every long and short window in seconds, each once, shortest first."""
    return sorted({w.long for w in budget.windows} | {w.short for w in budget.windows})
