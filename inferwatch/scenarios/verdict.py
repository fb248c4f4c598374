"""A finished row and all that was delivered -> what held, what did not, and how long each alert took."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from inferwatch.loop.notices import Notice
from inferwatch.scenarios.course import LATE_FACTOR, Course
from inferwatch.scenarios.row import Expected
from inferwatch.scenarios.shown import Shown, changed
from slo.names import alerts

STARVED_LOAD_PER_CPU = 3.0
"""Load average a CPU from which a late notification may be the machine's fault; reported, never excused."""
SEVERITY = "severity"
PAGE = "page"


@dataclass(frozen=True)
class Delivery:
    """
    An expected alert.

    Attributes:
        delay_seconds: fault to delivered notification; None: it did not come.
        theory_seconds: the most that theory allows; late over `bound_seconds`.
        recovery_seconds: end of the fault to the notification that it is over; None: not seen. Below 0 the alert
            ended while the fault went on.
        hold_note: that and how its hold is shorter than it ships, where it is.
    """

    alert: str
    labels: Mapping[str, str]
    delay_seconds: float | None
    theory_seconds: float
    bound_seconds: float
    recovery_seconds: float | None
    recovery_note: str
    hold_note: str = ""

    @property
    def over_theory(self) -> float | None:
        """Delay as a share of what theory allows."""
        return None if self.delay_seconds is None else self.delay_seconds / self.theory_seconds


@dataclass(frozen=True)
class Verdict:
    """
    One row.

    Attributes:
        seen: alerts that came and were neither demanded nor forbidden.
        failures: one sentence each; none: the row is as expected.
        load_average: mean and highest of the machine while the row was under way.
    """

    row: str
    stage: str
    fault: str
    deliveries: tuple[Delivery, ...]
    seen: tuple[str, ...]
    failures: tuple[str, ...]
    load_average: tuple[float, float]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether all was as expected."""
        return not self.failures


def verdict(course: Course, notices: Sequence[Notice], now: float, cpus: int) -> Verdict:
    """Judge a row by all notices of its stage; *now* in Unix seconds."""
    row = course.row
    own = [n for n in notices if row.owns(n)]
    deliveries = tuple(
        _delivery(course, expected, theory, notices)
        for expected, theory in zip(
            row.fires, course.theories, strict=False
        )  # none where the fault never began
    )
    failures = [course.trouble] if course.trouble else []
    failures += [
        sentence
        for expected, delivery in zip(row.fires, deliveries, strict=False)
        for sentence in _misses(expected, delivery)
    ]
    failures += _repeats(course, own)
    failures += _intruders(course, own)
    load = (fmean(course.loads), max(course.loads)) if course.loads else (0.0, 0.0)
    if failures and load[1] > STARVED_LOAD_PER_CPU * cpus:
        failures.append(
            f"(the machine's load average reached {load[1]:.0f} on {cpus} CPUs meanwhile: it may be starved)"
        )
    listed = {one.alert for one in row.fires}
    return Verdict(
        row.name,
        row.stage,
        _described(course),
        deliveries,
        tuple(sorted({n.alert for n in own if n.alert not in listed})),
        tuple(failures),
        (round(load[0], 1), round(load[1], 1)),
        round(now - course.fault_at, 1),
    )


def _described(course: Course) -> str:
    fault = course.row.fault
    fields = {
        k: v for k, v in vars(fault).items() if k != "mends_itself_seconds" and v not in (None, {}, "", False)
    }
    shown = " ".join(name if value is True else _told(value, course) for name, value in fields.items())
    return f"{type(fault).__name__} {shown}".strip()


def _told(value: object, course: Course) -> str:
    if isinstance(value, Shown):
        return " ".join(f"{name}={new}" for name, new in changed(course.row.shows, value).items())
    if isinstance(value, Mapping):
        return " ".join(f"{name}={number:g}" for name, number in value.items())
    return str(value)


def _delivery(course: Course, expected: Expected, theory: float, notices: Sequence[Notice]) -> Delivery:
    came = course.delivered(expected, notices)
    over = course.recovered(expected, notices) if came else None
    return Delivery(
        expected.alert,
        dict(expected.labels),
        round(came.received_at - course.since(expected), 1) if came else None,
        round(theory, 1),
        round(theory * LATE_FACTOR, 1),
        round(over.received_at - course.mended_at, 1) if over else None,
        expected.why_not_shown,
        course.holds.get(expected.alert, ""),
    )


def _misses(expected: Expected, delivery: Delivery) -> Iterable[str]:
    if delivery.delay_seconds is None:
        yield f"{expected.alert} was not delivered ({expected.status})"
        return
    if delivery.delay_seconds > delivery.bound_seconds:
        yield (
            f"{expected.alert} came after {delivery.delay_seconds:g} s; theory allows "
            f"{delivery.theory_seconds:g} s, the row {delivery.bound_seconds:g} s"
        )
    limit, took = expected.recovers_seconds, delivery.recovery_seconds
    if limit is not None and (took is None or took > limit):
        yield f"{expected.alert} did not end within {expected.recovers_seconds:g} s of the mend"
    elif limit is not None and took is not None and took < 0:
        yield f"{expected.alert} ended {-took:g} s before the mend, while the fault went on"


def _repeats(course: Course, own: Sequence[Notice]) -> Iterable[str]:
    for expected in course.row.fires:
        told = [n for n in own if expected.matches(n) and n.status == expected.status]
        if expected.once and len(told) > 1:
            yield f"{expected.alert} was delivered {len(told)} times; one incident is one notification"


def _intruders(course: Course, own: Sequence[Notice]) -> list[str]:
    """What fired and must not: before the fault anything, later what the row does not list."""
    row, said = course.row, []
    listed = {one.alert for one in row.fires} | set(row.may_fire)
    for notice in own:
        if notice.status != "firing" or notice.alert == alerts.WATCHDOG:
            continue
        paging = notice.labels.get(SEVERITY) == PAGE
        if notice.received_at < course.fault_at and (paging or row.quiet or notice.alert in listed):
            said.append(f"{notice.alert} came before the fault: {notice.summary}")
        elif notice.alert in row.silent or (notice.alert not in listed and (paging or row.quiet)):
            said.append(f"{notice.alert} must stay silent, and came: {notice.summary}")
    return list(dict.fromkeys(said))


def strangers(courses: Sequence[Course], notices: Sequence[Notice]) -> list[str]:
    """Return a sentence for each page of a stage that belongs to none of its rows."""
    return list(
        dict.fromkeys(
            f"{n.alert} came and belongs to no row: {n.summary}"
            for n in notices
            if n.status == "firing"
            and n.labels.get(SEVERITY) == PAGE
            and not any(course.row.owns(n) for course in courses)
        )
    )
