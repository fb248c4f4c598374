"""Proposals -> a table for a person and the lines for slo.yaml."""

from inferwatch.suggest.propose import Proposal

SLO_IDS = {
    "request_duration": "request-latency",
    "time_to_first_token": "time-to-first-token",
    "time_per_output_token": "time-per-output-token",
}


def line(name: str, proposal: Proposal, mark: str = "") -> str:
    """One proposal with its cost."""
    promise = f"{proposal.objective * 100:.10g} %"
    if proposal.threshold_seconds is not None:
        promise += f" within {proposal.threshold_seconds:g} s"
    spent = f"spends {proposal.budget_spent:.0%} of the budget"
    pages = f"{proposal.paging_hours} of {proposal.hours} hours would have paged"
    few = "" if proposal.enough else "; too few requests to tell"
    return f"  {name:<22}{promise:<22}{spent:<28}{pages}{few}{mark}"


def yaml_lines(availability: Proposal | None, latency: dict[str, list[Proposal]]) -> list[str]:
    """`slos:` as it stands in slo.yaml: for each SLI the strictest objective that was kept."""
    lines = ["    slos:"]
    if availability is not None:
        lines += [
            "      - id: availability",
            "        kind: availability",
            f"        objective: {availability.objective:g}",
            f"        why: History spent {availability.budget_spent:.0%} of this budget.",
        ]
    for sli, proposals in latency.items():
        if not proposals:
            continue
        chosen = next((p for p in proposals if p.objective == 0.99), proposals[-1])
        lines += [
            f"      - id: {SLO_IDS[sli]}",
            "        kind: latency",
            f"        sli: {sli}",
            f"        threshold_seconds: {chosen.threshold_seconds:g}",
            f"        objective: {chosen.objective:g}",
            f"        why: History spent {chosen.budget_spent:.0%} of this budget.",
        ]
    return lines
