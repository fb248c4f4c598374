"""Rows -> stages started side by side, every fault on its time, everything ended again, one result."""

import math
import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from statistics import median
from typing import Any

from inferwatch.scenarios.course import Course, Phase
from inferwatch.scenarios.node_rows import RECORDED
from inferwatch.scenarios.row import Row, StageName
from inferwatch.scenarios.stage import Stage
from inferwatch.scenarios.stages import PEER_TIMEOUT_SECONDS, STARTED, raised, settings_of
from inferwatch.scenarios.theory import RESEND_SECONDS, Theory
from inferwatch.scenarios.verdict import Verdict, strangers, verdict
from inferwatch.stack import launcher
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import Settings

LOOK_SECONDS = 0.5
WARMUP_SECONDS = 60.0
"""Every slow evaluation ran once and the base window is full before the first fault."""
ROWS_A_CPU = 20
"""All at once leave no CPU idle where there are two, and a starved machine is late for reasons of its own."""


def run(settings: Settings, rows: Sequence[Row], reporter: Reporter) -> dict[str, Any]:
    """
    Run the rows in *settings*' folder and on its ports; everything that was started is ended again.

    Returns the result; its `passed` is true only when every row is as expected.
    """
    began = time.monotonic()
    verdicts: list[Verdict] = []
    nobodys: dict[str, list[str]] = {}
    for wave in waves(rows, len(os.sched_getaffinity(0))):
        found, strange = _wave(settings, wave, reporter)
        verdicts += found
        nobodys |= strange
    return result((verdicts, nobodys), time.monotonic() - began)


def waves(rows: Sequence[Row], cpus: int) -> list[dict[StageName, list[Row]]]:
    """Return the stages that run side by side, and after each other where the CPUs cannot carry all of them."""
    by_stage: dict[StageName, list[Row]] = defaultdict(list)
    for row in rows:
        by_stage[row.stage].append(row)
    found: list[dict[StageName, list[Row]]] = []
    for name in (name for name in STARTED if name in by_stage):
        carried = sum(map(len, found[-1].values())) if found else math.inf
        if carried + len(by_stage[name]) > ROWS_A_CPU * cpus:
            found.append({})
        found[-1][name] = by_stage[name]
    return found


def _wave(
    settings: Settings, wave: Mapping[StageName, Sequence[Row]], reporter: Reporter
) -> tuple[list[Verdict], dict[str, list[str]]]:
    stages: list[Stage] = []
    try:
        for name, rows in wave.items():
            stages.append(raised(name, rows, settings, WARMUP_SECONDS, reporter))
        return _watch(stages, reporter)
    finally:
        for name in wave:
            launcher.down(settings_of(settings, name), reporter)


def _watch(stages: Sequence[Stage], reporter: Reporter) -> tuple[list[Verdict], dict[str, list[str]]]:
    """Follow every row to its end; verdicts, and the pages of each stage that are nobody's."""
    courses = {stage.name: [_course(stage, row) for row in stage.rows] for stage in stages}
    verdicts: dict[str, Verdict] = {}
    cpus = len(os.sched_getaffinity(0))
    while len(verdicts) < sum(map(len, courses.values())):
        time.sleep(LOOK_SECONDS)
        for stage in stages:
            notices, now = stage.notices(), time.time()
            for course in courses[stage.name]:
                before = course.phase
                if before is not Phase.WAITING or _may_begin(course, stage, courses[stage.name], now):
                    course.step(now, notices)
                if course.phase is Phase.DONE and before is not Phase.DONE:
                    verdicts[course.row.name] = verdict(course, notices, now, cpus)
                    reporter.say(told(verdicts[course.row.name]))
        under_way = [c.row.name for own in courses.values() for c in own if c.phase is not Phase.DONE]
        reporter.progress(f"{len(under_way)} rows under way: {', '.join(under_way)}")
    # Judged once more at the end: what came after a row was done counts as well.
    final = [
        verdict(course, stage.notices(), course.fault_at + verdicts[course.row.name].seconds, cpus)
        for stage in stages
        for course in courses[stage.name]
    ]
    return final, {stage.name: strangers(courses[stage.name], stage.notices()) for stage in stages}


def _course(stage: Stage, row: Row) -> Course:
    theory = Theory(stage.spec, PEER_TIMEOUT_SECONDS if stage.name == "watchers" else 0.0)
    fault = row.fault
    return Course(
        row,
        begin=partial(fault.begin, stage, row),
        end=partial(fault.end, stage, row),
        theory=lambda expected: theory.seconds(row, expected, time.time() - stage.began_at),
        # Prometheus tells an Alertmanager again within its resend delay, and a known group waits for its interval.
        retold_seconds=RESEND_SECONDS + stage.spec.intervals.group_interval_seconds,
        holds=stage.holds,
    )


def _may_begin(course: Course, stage: Stage, others: Sequence[Course], now: float) -> bool:
    """The stage is warm, and what must come first has been mended."""
    first = [other for other in others if other.row.name in course.row.after]
    ready_at = max(stage.ready_at, stage.began_at + course.row.lead_seconds)
    return now >= ready_at and all(other.is_mended for other in first)


def told(one: Verdict) -> str:
    """A finished row in one line."""
    took = ", ".join(
        f"{d.alert} {d.delay_seconds:g} s of {d.theory_seconds:g} s"
        if d.delay_seconds is not None
        else f"{d.alert} never"
        for d in one.deliveries
    )
    return f"{'ok  ' if one.passed else 'FAIL'} {one.row}: {took or 'nothing came'}" + "".join(
        f"\n     {failure}" for failure in one.failures
    )


def result(found: tuple[list[Verdict], dict[str, list[str]]], seconds: float) -> dict[str, Any]:
    """Return what `inferwatch scenarios --json` prints."""
    verdicts, nobodys = found
    delivered = [d for one in verdicts for d in one.deliveries if d.delay_seconds is not None]
    delays = [d.delay_seconds for d in delivered if d.delay_seconds is not None]
    shares = [d.over_theory for d in delivered if d.over_theory is not None]
    return {
        "rows": [
            asdict(one)
            | {
                "passed": one.passed,
                "deliveries": [
                    asdict(d) | {"delay_over_theory": _rounded(d.over_theory)} for d in one.deliveries
                ],
            }
            for one in verdicts
        ],
        "delay_seconds": {"median": _middle(delays), "worst": max(delays, default=None)},
        "delay_over_theory": {
            "median": _rounded(_middle(shares)),
            "worst": _rounded(max(shares, default=None)),
        },
        "unexplained_pages": {name: said for name, said in nobodys.items() if said},
        "recorded": RECORDED if any(one.stage == "nodes" for one in verdicts) else "",
        "load_average": {"worst": max((one.load_average[1] for one in verdicts), default=None)},
        "seconds": round(seconds, 1),
        "passed": all(one.passed for one in verdicts) and not any(nobodys.values()),
    }


def _middle(values: Sequence[float]) -> float | None:
    return round(median(values), 3) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
