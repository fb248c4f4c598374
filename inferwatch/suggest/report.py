"""A Prometheus and slo.yaml -> what to promise, beside what is promised now."""

import time
from dataclasses import dataclass

from inferwatch.promapi import Prometheus
from inferwatch.stack.errors import StackError
from inferwatch.suggest import history, propose, text
from inferwatch.suggest.propose import Proposal
from slo.objectives import Service
from slo.spec import Spec

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Suggestion:
    """What was read and what follows; *costs_now* are the promises of slo.yaml on the same history."""

    seconds: float
    sources: dict[str, str]
    requests: dict[str, float]
    availability: Proposal | None
    latency: dict[str, list[Proposal]]
    costs_now: dict[str, Proposal]
    notes: list[str]

    def shown(self) -> str:
        """For a person."""
        lines = [
            f"history: {self.seconds / 3600:.1f} h; read from {', '.join(sorted(set(self.sources.values())))}"
        ]
        lines += ["what slo.yaml promises now would have cost:"]
        lines += [text.line(name, cost) for name, cost in self.costs_now.items()] or [
            "  nothing that could be read"
        ]
        lines += ["what this history supports (at most half the budget spent):"]
        if self.availability:
            lines.append(text.line("availability", self.availability))
        lines += [text.line(sli, p) for sli, found in self.latency.items() for p in found]
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join([*lines, "for slo.yaml:", *text.yaml_lines(self.availability, self.latency)])


def suggest(
    client: Prometheus,
    spec: Spec,
    service: Service,
    selector: str,
    seconds: float | None,
    now: float | None = None,
) -> Suggestion:
    """
    Read at most the budget's period, or the last *seconds*, and propose.

    *selector*: label matchers of the series, for a Prometheus that does not set our `service`.
    Raises StackError where there is no history at all, PromError where Prometheus cannot be asked.
    """
    at = time.time() if now is None else now
    most = seconds or spec.budget.period_days * DAY_SECONDS
    known = history.length_seconds(client, selector, at, most)
    if known is None:
        raise StackError(
            f"{client.base_url} has no latency histogram of an engine{' with ' + selector if selector else ''}; "
            "name other labels with --selector, or wait until there is traffic"
        )
    span = min(known, most)
    found = {
        sli: read
        for sli in history.LATENCY
        if (read := history.latency(client, sli, selector, at, span)) is not None
    }
    counted = history.answers(client, service.inference_handlers, selector, at, span)
    return Suggestion(
        seconds=span,
        sources={sli: read.source for sli, read in found.items()}
        | ({"availability": counted.source} if counted else {}),
        requests={sli: read.whole.total for sli, read in found.items()},
        availability=propose.availability_proposal(counted, spec.budget) if counted else None,
        latency={sli: propose.latency_proposals(read, spec.budget) for sli, read in found.items()},
        costs_now=_costs_now(service, spec, found, counted),
        notes=_notes(spec, found, counted, span),
    )


def _costs_now(
    service: Service,
    spec: Spec,
    found: dict[str, history.LatencyHistory],
    counted: history.Answers | None,
) -> dict[str, Proposal]:
    costs: dict[str, Proposal] = {}
    for slo in service.slos:
        if slo.kind == "availability" and counted:
            costs[slo.id] = propose.availability_cost(counted, slo.objective, spec.budget)
        read = found.get(slo.sli or "")
        if read and slo.threshold_seconds is not None and slo.threshold_seconds in read.whole.within:
            costs[slo.id] = propose.latency_cost(read, slo.threshold_seconds, slo.objective, spec.budget)
    return costs


def _notes(
    spec: Spec, found: dict[str, history.LatencyHistory], counted: history.Answers | None, span: float
) -> list[str]:
    notes = []
    if span < 7 * DAY_SECONDS:
        notes.append("less than a week of history: no weekday's peak may be in it yet")
    if counted is None:
        notes.append("no counted HTTP answers: availability cannot be proposed")
    for sli, read in found.items():
        if not propose.latency_proposals(read, spec.budget):
            few = read.whole.total * (1 - min(propose.LATENCY_OBJECTIVES)) < spec.budget.min_bad_events
            why = "too few requests" if few else "no bound keeps half a budget"
            notes.append(f"{sli}: {why} ({read.whole.total:.0f} requests)")
    return notes
