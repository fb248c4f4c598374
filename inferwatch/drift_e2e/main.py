"""Healthy, a topic shift, the shift with slow retrieval, a swapped model: what the stack said of each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from alerts.theory import delivery_seconds, group_interval_seconds
from exporters.drift.fit import fit
from exporters.drift.profile import save
from inferwatch.drift_client import DriftClient
from inferwatch.drift_e2e import parts
from inferwatch.drift_e2e.embedder import Embedder, embed_all
from inferwatch.drift_e2e.plan import Plan, compressed
from inferwatch.drift_e2e.traffic import Mood, Traffic
from inferwatch.loop import notices
from inferwatch.promapi import Prometheus
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings
from slo.names import alerts
from slo.names import drift as names
from slo.objectives import Severity
from slo.spec import Spec

PAGES = (alerts.JOINT_CRITICAL,)


@dataclass
class Run:
    """What phases share and add to."""

    plan: Plan
    spec: Spec
    embedder: Embedder
    prometheus: Prometheus
    traffic: Traffic
    notifications: Path
    reporter: Reporter
    topics: dict[str, list[str]]
    facts: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def expect(self, holds: bool, what: str) -> None:
        """Note a claim that does not hold."""
        self.reporter.say(f"  {'ok  ' if holds else 'FAIL'} {what}")
        if not holds:
            self.failures.append(what)

    def wait(self, what: str, condition: Callable[[], bool], grouping: float = 0.0) -> float | None:
        """
        Seconds until the condition held; None is a failure: it did not within the plan's patience.

        *grouping*: seconds more that Alertmanager may hold a notice back.
        """
        began, patience = time.monotonic(), self.plan.patience + grouping
        while time.monotonic() - began < patience:
            if condition():
                seconds = round(time.monotonic() - began, 1)
                self.expect(True, f"{what} ({seconds} s)")
                return seconds
            time.sleep(0.5)
        self.expect(False, f"{what}: not within {patience:g} s")
        return None

    def wait_told(self, what: str, alert: str, severity: Severity) -> float | None:
        """Seconds until a notice of *alert* came; where another one opened its group first, it waits the group's interval."""
        return self.wait(what, lambda: bool(self.told(alert)), delivery_seconds(self.spec, severity))

    def drift(self) -> str | None:
        """The service's drift state as Prometheus has it."""
        found = self.prometheus.query(names.SERVICE_DRIFT)
        return found[0].labels[names.LABEL_DRIFT] if len(found) == 1 else None

    def cell(self) -> tuple[str, str, str] | None:
        """Band, drift and level of the retrieval's live cell."""
        found = self.prometheus.query(f'{names.LEVEL}{{sli="{names.SLI_RETRIEVAL}"}}')
        if len(found) != 1:
            return None
        live = found[0].labels
        return live[names.LABEL_BAND], live[names.LABEL_DRIFT], live[names.LABEL_LEVEL]

    def told(self, alert: str, status: str = "firing", since: float = 0.0) -> list[notices.Notice]:
        """Notices of an alert so far."""
        found = notices.read(self.notifications)
        return [n for n in found if n.alert == alert and n.status == status and n.received_at >= since]


def healthy(run: Run) -> None:
    """A whole window, which stands for 15 minutes, without drift; the level is INFO and nobody is told."""
    run.facts["first_verdict_s"] = run.wait(
        "a healthy stream is judged: no drift", lambda: run.drift() == "no"
    )
    run.wait("its cell is steady × no: info", lambda: run.cell() == ("steady", "no", "info"))
    seen: set[str | None] = set()
    end = time.monotonic() + run.plan.healthy
    while time.monotonic() < end:
        seen.add(run.drift())
        time.sleep(0.5)
    run.expect(seen == {"no"}, f"no drift for {run.plan.healthy:g} s, two windows; seen: {seen}")
    told = [n.alert for n in notices.read(run.notifications)]
    run.expect(told == [], f"INFO is a state and no alert; told: {told}")


def shifted(run: Run) -> None:
    """Another topic at the same speed: its own cell, a warning, no page."""
    run.traffic.mood.texts = run.topics["shifted"]
    run.facts["drift_seen_s"] = run.wait("a topic shift is drift", lambda: run.drift() == "yes")
    run.wait("its cell is steady × yes: warn", lambda: run.cell() == ("steady", "yes", "warn"))
    run.facts["warning_s"] = run.wait_told("the warning is delivered", alerts.JOINT_WARN, "warning")
    run.expect(not run.told(alerts.JOINT_CRITICAL), "a shift without latency pages nobody")


def slow(run: Run) -> None:
    """The same shift with slow retrieval: critical, one page."""
    began = time.time()
    run.traffic.mood.slow = True
    cell = ("much_slower", "yes", "critical")
    run.facts["critical_cell_s"] = run.wait("slow retrieval beside it: critical", lambda: run.cell() == cell)
    run.wait_told("the page is delivered", alerts.JOINT_CRITICAL, "page")
    if paged := run.told(alerts.JOINT_CRITICAL):
        run.facts["fault_to_page_s"] = round(paged[0].received_at - began, 1)
        run.facts["page"] = paged[0].summary
    time.sleep(run.plan.window / 2)
    pages = [
        n for n in notices.read(run.notifications) if n.status == "firing" and n.labels["severity"] == "page"
    ]
    run.expect(len(pages) == 1, f"one incident is one page; pages: {[n.alert for n in pages]}")
    run.traffic.mood.slow = False
    run.traffic.mood.texts = run.topics["healthy"]
    calm = "all is quick and on topic again: nothing is critical"
    firing = f'ALERTS{{alertname="{alerts.JOINT_CRITICAL}",alertstate="firing"}}'
    run.facts["calm_s"] = run.wait(calm, lambda: not run.prometheus.query(firing))


def swapped(run: Run) -> None:
    """Another model under the same URL: a state of its own, a ticket, no drift and no page."""
    run.wait("no drift again", lambda: run.drift() == "no")
    run.traffic.mood.paused = True
    model = run.embedder.start(swapped=True)
    began, run.traffic.mood.model, run.traffic.mood.paused = time.time(), model, False
    run.wait("a swapped model is a swap", lambda: run.drift() == "swapped")
    run.wait_told("the ticket is delivered", alerts.MODEL_SWAPPED, "ticket")
    if tickets := run.told(alerts.MODEL_SWAPPED):
        run.facts["swap_to_ticket_s"] = round(tickets[0].received_at - began, 1)
    late = [
        n.alert for n in notices.read(run.notifications) if n.status == "firing" and n.received_at > began
    ]
    run.expect(alerts.JOINT_CRITICAL not in late, "a swap pages nobody as drift")


def resolved(run: Run) -> None:
    """The page is taken back; Alertmanager tells of a group again only after its group interval."""
    taken_back = group_interval_seconds(run.spec, "page")
    run.wait("the page was resolved", lambda: bool(run.told(alerts.JOINT_CRITICAL, "resolved")), taken_back)


PHASES = (healthy, shifted, slow, swapped, resolved)


def _reference(url: str, model: str, texts: list[str], plan: Plan, out: Path) -> np.ndarray:
    """Fit and save the profile of *texts*; returns their vectors, which are the index that is searched too."""
    vectors = embed_all(url, model, texts[: plan.reference_texts])
    save(fit(vectors, model, "", compressed(plan).drift, rounds=plan.calibration_rounds), out)
    return np.asarray(vectors, np.float32)


def run(
    settings: Settings,
    reporter: Reporter,
    embedder: Embedder,
    topics: dict[str, list[str]],
    plan: Plan,
    phases: Sequence[Callable[[Run], None]] = PHASES,
) -> dict[str, Any]:
    """
    Run the phases in a folder of its own; all that was started is ended again.

    *topics*: texts called reference, healthy and shifted. `passed` is true only when every claim held.
    """
    began = time.monotonic()
    folder = settings.run_dir / "drift-e2e" / time.strftime("%Y%m%dT%H%M%S")
    folder.mkdir(parents=True)
    spec, ports = compressed(plan), parts.free_ports()
    try:
        model = embedder.start()
        with reporter.task("embedding and fitting the reference"):
            index = _reference(embedder.url, model, topics["reference"], plan, folder / "reference.npz")
        parts.write_all(spec, settings, folder, ports, folder / "reference.npz", embedder.url)
        with (
            parts.running(settings, folder, ports, reporter),
            Prometheus(ports.url("prometheus")) as prometheus,
            DriftClient(ports.url("ingest"), model, token=parts.TOKEN) as client,
            Traffic(plan, ports.url("tap"), client, index, Mood(topics["healthy"], model)) as traffic,
        ):
            notifications = folder / "notifications.jsonl"
            held = Run(plan, spec, embedder, prometheus, traffic, notifications, reporter, topics)
            for phase in phases:
                reporter.say(f"— {phase.__name__}: {(phase.__doc__ or '').splitlines()[0]}")
                phase(held)
            held.expect(not traffic.errors, f"every request was answered; errors: {traffic.errors[:3]}")
            held.expect(client.stats().failed == 0, f"the client delivered: {client.stats()}")
    finally:
        embedder.stop()
    return {
        "compressed": f"a window of {plan.window} s stands for 15 min; scrape and evaluation every second",
        "requests": traffic.answers,
        **held.facts,
        "seconds": round(time.monotonic() - began, 1),
        "failures": held.failures,
        "passed": not held.failures,
    }
