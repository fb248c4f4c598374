"""A row under way on a clock and notices of the test's own, and what is made of it at the end."""

from dataclasses import dataclass, field, replace

import pytest

from inferwatch.loop.notices import Notice
from inferwatch.scenarios.course import Course, Phase
from inferwatch.scenarios.faults import Nothing
from inferwatch.scenarios.row import Expected, Row
from inferwatch.scenarios.verdict import Verdict, strangers, verdict
from inferwatch.stack.errors import StackError

START = 1000.0


def notice(
    at: float, alert: str, status: str = "firing", service: str = "svc", severity: str = "page"
) -> Notice:
    """A delivered alert; *at* counts from the row's start."""
    labels = {"alertname": alert, "service": service, "severity": severity}
    return Notice(START + at, alert, status, labels, f"{alert} of {service}")


def implied_end(at: float, alert: str) -> Notice:
    """The alert's group was called resolved without naming it."""
    return replace(notice(at, alert, "resolved"), implied=True)


@dataclass
class Bench:
    """A row with a fault that only remembers being called, and theory of 20 s for each alert."""

    row: Row
    calls: list[str] = field(default_factory=list)

    def course(self) -> Course:
        return Course(
            self.row,
            lambda: self.calls.append("begin"),
            lambda: self.calls.append("end"),
            lambda _: 20.0,
            190.0,
        )


def played(course: Course, notices: list[Notice], seconds: int = 700) -> Verdict:
    """Step through the seconds, showing each notice from its time on; judge at the end."""
    now = START
    while course.phase is not Phase.DONE and now < START + seconds:
        course.step(now, [n for n in notices if n.received_at <= now])
        now += 1
    return verdict(course, notices, now, cpus=10_000)


DOWN = Row("svc", Nothing(None), fires=(Expected("EngineDown"),), may_fire=("CanaryFailing",))


def test_a_row_that_is_as_expected() -> None:
    """Delivered after 12 s, mended then, over 30 s later."""
    bench = Bench(DOWN)
    found = played(bench.course(), [notice(12, "EngineDown"), notice(42, "EngineDown", "resolved")])

    assert found.passed
    assert bench.calls == ["begin", "end"]
    (delivery,) = found.deliveries
    assert (delivery.delay_seconds, delivery.theory_seconds, delivery.bound_seconds) == (12.0, 20.0, 25.0)
    assert delivery.over_theory == pytest.approx(0.6)
    assert delivery.recovery_seconds == 30.0


def test_a_late_notification_is_a_miss_with_its_delay() -> None:
    """26 s are over a quarter more than the 20 s of theory; 25 s are not."""
    late = played(Bench(DOWN).course(), [notice(26, "EngineDown"), notice(60, "EngineDown", "resolved")])
    edge = played(Bench(DOWN).course(), [notice(25, "EngineDown"), notice(60, "EngineDown", "resolved")])

    assert late.deliveries[0].delay_seconds == 26.0
    assert late.failures == ("EngineDown came after 26 s; theory allows 20 s, the row 25 s",)
    assert edge.passed


def test_what_never_comes_ends_the_wait() -> None:
    """25 s and 45 s of patience later the fault is mended, and the row has failed."""
    bench = Bench(DOWN)
    course = bench.course()
    found = played(course, [])

    assert course.mended_at == START + 71
    assert bench.calls == ["begin", "end"]
    assert found.failures == ("EngineDown was not delivered (firing)",)
    assert found.deliveries[0].delay_seconds is None


def test_what_does_not_end_is_a_miss() -> None:
    """Eight minutes after the mend it still fires; one that came back counts as not ended too."""
    still = played(Bench(DOWN).course(), [notice(12, "EngineDown")])
    again = played(
        Bench(DOWN).course(),
        [notice(12, "EngineDown"), notice(30, "EngineDown", "resolved"), notice(31, "EngineDown")],
    )

    assert still.failures == ("EngineDown did not end within 480 s of the mend",)
    assert again.failures == still.failures


def test_pages_that_are_not_listed_fail_the_row_and_warnings_do_not() -> None:
    """A page of the same service must be listed; another service's is not this row's."""
    base = [notice(12, "EngineDown"), notice(42, "EngineDown", "resolved")]
    course = Bench(DOWN).course()
    fine = [
        notice(13, "CanaryFailing"),
        notice(14, "ProbesFailing", severity="warning"),
        notice(15, "EngineHung", service="other"),
    ]
    found = played(course, base + fine)
    assert found.passed
    assert found.seen == ("CanaryFailing", "ProbesFailing")
    assert strangers([course], base + fine) == ["EngineHung came and belongs to no row: EngineHung of other"]

    page = played(Bench(DOWN).course(), [*base, notice(13, "EngineHung")])
    assert page.failures == ("EngineHung must stay silent, and came: EngineHung of svc",)


def test_a_page_before_the_fault_fails_the_row() -> None:
    """Even the expected one: it cannot be due to a fault that was not there yet."""
    early = [notice(-5, "EngineDown"), notice(12, "EngineDown"), notice(42, "EngineDown", "resolved")]
    assert played(Bench(DOWN).course(), early).failures == (
        "EngineDown came before the fault: EngineDown of svc",
    )


def test_a_warning_that_was_there_before_the_fault_is_none_of_its_own() -> None:
    """It fired 5 s before, and its group told of it again 12 s after the fault: that shows nothing of the fault."""
    row = Row("svc", Nothing(None), fires=(Expected("KvCachePressure"),))
    found = played(
        Bench(row).course(),
        [
            notice(-5, "KvCachePressure", severity="warning"),
            notice(12, "KvCachePressure", severity="warning"),
            notice(42, "KvCachePressure", "resolved", severity="warning"),
        ],
    )

    assert found.failures == ("KvCachePressure came before the fault: KvCachePressure of svc",)


def test_an_end_before_the_mend_is_no_recovery() -> None:
    """Of two alerts one came at 12 s and ended at 15 s; the other came at 20 s, and only then the fault was mended."""
    row = Row("svc", Nothing(None), fires=(Expected("EngineDown"), Expected("ServiceDown")))
    found = played(
        Bench(row).course(),
        [
            notice(12, "EngineDown"),
            notice(15, "EngineDown", "resolved"),
            notice(20, "ServiceDown"),
            notice(40, "ServiceDown", "resolved"),
        ],
    )

    assert found.failures == ("EngineDown ended 5 s before the mend, while the fault went on",)
    assert [delivery.recovery_seconds for delivery in found.deliveries] == [-5.0, 20.0]


def test_named_silence_holds_for_warnings_too() -> None:
    """An alert in `silent` fails the row whatever its severity."""
    row = Row("svc", Nothing(5.0), silent=("KvCachePressure",))
    found = played(Bench(row).course(), [notice(3, "KvCachePressure", severity="warning")])
    assert len(found.failures) == 1


def test_a_quiet_row_takes_nothing_at_all() -> None:
    """A warning before or during the ten minutes fails it; it lasts as long as it says."""
    row = Row("svc", Nothing(600.0), quiet=True)
    course = Bench(row).course()
    assert played(course, []).passed
    assert course.mended_at == START + 600
    for at in (-3.0, 300.0):
        assert not played(Bench(row).course(), [notice(at, "ProbesFailing", severity="warning")]).passed


def test_a_fault_lasts_as_long_as_its_row_says() -> None:
    """Delivered after 12 s and mended after 300, so that what must stay silent has its time."""
    row = Row("svc", Nothing(None), (Expected("EngineDown"),), silent=("CanaryFailing",), fault_seconds=300.0)
    came = [notice(12, "EngineDown"), notice(330, "EngineDown", "resolved")]
    course = Bench(row).course()
    found = played(course, came)
    late = played(Bench(row).course(), [*came, notice(250, "CanaryFailing")])

    assert found.passed
    assert course.mended_at == START + 300
    assert late.failures == ("CanaryFailing must stay silent, and came: CanaryFailing of svc",)


def test_what_cuts_the_way_is_told_after_the_mend() -> None:
    """The fault lasts its 330 s whatever came; the page at 350 s is 20 s after the mend, and 26 s would be late."""
    row = Row(
        "svc",
        Nothing(None),
        (Expected("AlertsNotSent", afterwards=True, recovers_seconds=None),),
        fault_seconds=330.0,
    )
    course = Bench(row).course()
    found = played(course, [notice(350, "AlertsNotSent")])

    assert course.mended_at == START + 330
    assert found.passed and found.deliveries[0].delay_seconds == 20.0
    assert not played(Bench(row).course(), [notice(356, "AlertsNotSent")]).passed
    assert played(Bench(row).course(), []).failures == ("AlertsNotSent was not delivered (firing)",)


def test_one_incident_is_one_notification() -> None:
    """Told twice it fails a row that wants it once, and no other."""
    came = [notice(12, "EngineDown"), notice(40, "EngineDown"), notice(60, "EngineDown", "resolved")]
    once = Row("svc", Nothing(None), (Expected("EngineDown", once=True),))

    assert played(Bench(once).course(), came).failures == (
        "EngineDown was delivered 2 times; one incident is one notification",
    )
    assert played(Bench(once).course(), [came[0], came[2]]).passed
    assert played(Bench(DOWN).course(), came).passed


def test_a_hold_that_is_shorter_than_it_ships_is_told_with_the_delivery() -> None:
    """Only beside the alert that it is of."""
    course = Bench(DOWN).course()
    course.holds = {"EngineDown": "held 1 min in place of 30 min"}
    assert played(course, [notice(12, "EngineDown")]).deliveries[0].hold_note == (
        "held 1 min in place of 30 min"
    )
    assert played(Bench(DOWN).course(), [notice(12, "EngineDown")]).deliveries[0].hold_note == ""


def test_a_fault_that_mends_itself_is_measured_from_there() -> None:
    """Down for 40 s: an end at 50 s is a recovery in 10 s, though the page came at 12 s."""
    row = Row("svc", Nothing(40.0), fires=(Expected("EngineDown"),))
    found = played(Bench(row).course(), [notice(12, "EngineDown"), notice(50, "EngineDown", "resolved")])
    assert found.deliveries[0].recovery_seconds == 10.0


def test_an_alert_that_must_end_is_awaited_ending() -> None:
    """The watchdog's end is what the fault brings, its coming again the recovery."""
    row = Row("svc", Nothing(None), fires=(Expected("Watchdog", status="resolved"),))
    found = played(
        Bench(row).course(),
        [
            notice(-10, "Watchdog"),
            notice(5, "Watchdog"),
            notice(15, "Watchdog", "resolved"),
            notice(40, "Watchdog"),
        ],
    )
    assert found.passed
    assert found.deliveries[0].delay_seconds == 15.0
    assert found.deliveries[0].recovery_seconds == 25.0


def test_a_fault_that_cannot_be_brought_fails_its_row_alone() -> None:
    """The reason is the row's failure; nothing is raised."""

    def refuse() -> None:
        raise StackError("the engine is gone")

    found = played(Course(DOWN, refuse, lambda: None, lambda _: 20.0), [])
    assert "the engine is gone" in found.failures


def test_recovery_is_the_first_end_that_lasts() -> None:
    """An end that is told again later was over at the first telling; one that came too late is a miss."""
    twice = [
        notice(12, "EngineDown"),
        notice(42, "EngineDown", "resolved"),
        notice(117, "EngineDown", "resolved"),
    ]
    assert played(Bench(DOWN).course(), twice).deliveries[0].recovery_seconds == 30.0
    course = Bench(DOWN).course()
    played(course, twice[:1])
    late = [*twice[:1], notice(600, "EngineDown", "resolved")]
    assert verdict(course, late, START + 700, cpus=10_000).failures == (
        "EngineDown did not end within 480 s of the mend",
    )


def test_an_end_that_is_only_implied_is_believed_when_nothing_is_told_again() -> None:
    """Mended at 12 s, its group over at 40 s: known only after 190 s more, in which what still fires is told again."""
    course = Bench(DOWN).course()
    found = played(course, [notice(12, "EngineDown"), implied_end(40, "EngineDown")])

    assert found.passed and found.deliveries[0].recovery_seconds == 28.0
    assert found.seconds > 40 + 190

    still = [notice(12, "EngineDown"), implied_end(40, "EngineDown"), notice(150, "EngineDown")]
    (failure,) = played(Bench(DOWN).course(), still).failures
    assert failure.startswith("EngineDown did not end within")


def test_an_end_that_is_implied_before_the_mend_is_none() -> None:
    """The fault is there until the second alert came, at 30 s; the first one's own end counts, and from the mend on."""
    row = Row("svc", Nothing(None), fires=(Expected("EngineDown"), Expected("ServiceDown")))
    told = [notice(12, "EngineDown"), implied_end(20, "EngineDown"), notice(25, "ServiceDown")]
    ends = [notice(60, "EngineDown", "resolved"), notice(60, "ServiceDown", "resolved")]
    found = played(Bench(row).course(), told + ends)

    assert found.passed and [d.recovery_seconds for d in found.deliveries] == [35.0, 35.0]
