"""A history -> objectives that it would have kept, each with its cost in budget. Pure arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass

from inferwatch.suggest.history import Answers, LatencyHistory
from slo.burn import error_ratio_threshold
from slo.objectives import Budget

LATENCY_OBJECTIVES = (0.95, 0.99, 0.999)
AVAILABILITY_OBJECTIVES = (0.99, 0.995, 0.999, 0.9995, 0.9999)
# A promise that ordinary weeks half spend leaves room for one that is not.
SPEND_AT_MOST = 0.5


@dataclass(frozen=True)
class Proposal:
    """
    One objective and what the history would have cost it.

    Attributes:
        threshold_seconds: a bucket bound; None for availability.
        budget_spent: share of the budget, were the whole period like the history; over 1: broken.
        paging_hours: hours, of *hours*, that burned fast enough for the quickest page.
        enough: whether there were so many requests that the budget is more than a handful of them.
        keeps: whether the history would have spent at most half the budget, with enough requests.
    """

    objective: float
    threshold_seconds: float | None
    bad_ratio: float
    budget_spent: float
    paging_hours: int
    hours: int
    enough: bool

    @property
    def keeps(self) -> bool:
        """Whether it is a promise that this history supports."""
        return self.enough and self.budget_spent <= SPEND_AT_MOST


def latency_proposals(history: LatencyHistory, budget: Budget) -> list[Proposal]:
    """The lowest bound for each objective; objectives that no bound keeps, or that are never tested, are left out."""
    found = []
    for objective in LATENCY_OBJECTIVES:
        costs = [latency_cost(history, bound, objective, budget) for bound in history.whole.within]
        if (kept := next((cost for cost in costs if cost.keeps), None)) is not None:
            found.append(kept)
    return found


def latency_cost(history: LatencyHistory, bound: float, objective: float, budget: Budget) -> Proposal:
    """What one promise would have cost; KeyError for a bound that the histogram lacks."""
    hours = [(span.total, span.bad(bound)) for span in history.hours if bound in span.within]
    return _cost(history.whole.total, history.whole.bad(bound), hours, objective, bound, budget)


def availability_proposal(answers: Answers, budget: Budget) -> Proposal | None:
    """The strictest objective that the history supports, None where it supports none."""
    costs = [availability_cost(answers, objective, budget) for objective in AVAILABILITY_OBJECTIVES]
    return next((cost for cost in reversed(costs) if cost.keeps), None)


def availability_cost(answers: Answers, objective: float, budget: Budget) -> Proposal:
    """What one objective would have cost."""
    return _cost(answers.total, answers.failed, answers.hours, objective, None, budget)


def _cost(
    total: float,
    bad: float,
    hours: Sequence[tuple[float, float]],
    objective: float,
    bound: float | None,
    budget: Budget,
) -> Proposal:
    allowed = 1 - objective
    limit = _quickest_page(objective, budget)
    paging = sum(h_bad / h_total > limit for h_total, h_bad in hours if h_bad >= budget.min_bad_events)
    return Proposal(
        objective=objective,
        threshold_seconds=bound,
        bad_ratio=bad / total,
        budget_spent=bad / total / allowed,
        paging_hours=paging,
        hours=len(hours),
        enough=total * allowed >= budget.min_bad_events,
    )


def _quickest_page(objective: float, budget: Budget) -> float:
    pages = [w for w in budget.windows if w.severity == "page"]
    quickest = min(pages, key=lambda window: window.long)
    return error_ratio_threshold(quickest, budget.period_days, objective)
