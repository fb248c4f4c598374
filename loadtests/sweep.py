"""A grid over rates and engine flags, or a search for the highest rate that keeps the promise -> measured points.

The promise is what the latency and error gates of slo.yaml say.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from loadtests import identity
from loadtests.compare import Figure, ratio
from loadtests.engineproc import FlagValue, Start, running, with_flags
from loadtests.gates import judge
from loadtests.quality import read_questions, score
from loadtests.report import summarise
from loadtests.run import LoadResult, run_load
from loadtests.sweepplan import ENGINE, Scores, SweepPlan, apply, enough_seconds, smallest_share
from loadtests.verdict import GateExit
from slo.spec import Spec


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One measured setting, what the latency and error gates said of it, and by which findings they did not pass.

    `many_errors`: a gate on errors failed, so that latency and throughput are those of the few that got through.
    """

    settings: dict[str, FlagValue]
    folder: Path
    code: GateExit
    why: tuple[str, ...]
    many_errors: bool
    summary: dict[str, Any]
    quality: Figure | None

    @property
    def kept(self) -> bool:
        """The promise was kept."""
        return self.code is GateExit.PASSED

    @property
    def void(self) -> bool:
        """Nobody knows if the promise was kept: too little was measured, or the load client and not the engine."""
        return self.code not in (GateExit.PASSED, GateExit.FAILED)

    @property
    def not_compared(self) -> str | None:
        """Why its figures say nothing beside those of other points; None when they do."""
        return self.outcome if self.void else "too many errors" if self.many_errors else None

    @property
    def outcome(self) -> str:
        """The code in words."""
        return "kept" if self.kept else self.code.name.lower().replace("_", " ")

    @property
    def label(self) -> str:
        """The settings in short."""
        return label_of(self.settings)

    def latency_s(self, measure: str, figure: str) -> float | None:
        """A latency figure of the summary, such as ("ttft_s", "p95")."""
        found = self.summary["latency"][measure]
        return None if found is None or found[figure] is None else float(found[figure])


def run_sweep(sweep: SweepPlan, folder: Path, spec: Spec, say: Callable[[str], None]) -> list[SweepPoint]:
    """Measure every setting; the engine is restarted only when its flags change. Points in measured order.

    Each point is kept as soon as it was measured, so that an engine which does not start with the last flags
    costs no hours: `read_points` has what there was.
    """
    points: list[SweepPoint] = []
    for flags, settings in _by_engine(sweep):
        with _engine(sweep, flags, folder / "engines" / f"{len(points):03d}.log"):
            for setting in settings:
                for point in _measure(sweep, {**flags, **setting}, folder, len(points), spec, say):
                    say(f"{point.label}: {point.outcome}")
                    points.append(point)
                    _keep(points, folder)
    return points


def _keep(points: list[SweepPoint], folder: Path) -> None:
    text = json.dumps([_as_json(point) for point in points], indent=1)
    partial = folder / "points.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / "points.json")


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found for one setting: highest level that kept the promise, lowest that broke it; None: neither did.

    `void` is the point at which the search ended because it told nothing.
    """

    kept: float | None
    broken: float | None
    void: SweepPoint | None

    def text(self, axis: str) -> str:
        """One line for people; what was not measured is said to be unknown."""
        known = f"{axis} up to {self.kept:.4g} keeps the promise" if self.kept is not None else ""
        if self.void is not None:
            why = f"{self.void.outcome} at {axis} {self.void.settings[axis]:.4g} ({'; '.join(self.void.why)})"
            return f"{known}; unknown above: {why}" if known else f"unknown: {why}"
        if self.broken is None:
            return f"{known}; nothing above was tried"
        return known or f"{axis} {self.broken:.4g}, the lowest tried, breaks the promise"


def search_results(points: list[SweepPoint], axis: str) -> dict[str, Found]:
    """Setting (without *axis*) → what the search along *axis* found."""
    by_setting: dict[str, list[SweepPoint]] = {}
    for point in points:
        rest = {name: value for name, value in point.settings.items() if name != axis}
        by_setting.setdefault(label_of(rest), []).append(point)
    return {
        name: Found(
            max((float(point.settings[axis]) for point in own if point.kept), default=None),
            min(
                (float(point.settings[axis]) for point in own if point.code is GateExit.FAILED), default=None
            ),
            next((point for point in own if point.void), None),
        )
        for name, own in by_setting.items()
    }


def label_of(settings: dict[str, FlagValue]) -> str:
    """Settings in short, on one line."""
    return (
        " ".join(
            f"{name.removeprefix(ENGINE)}={f'{value:.4g}' if isinstance(value, float) else value}"
            for name, value in settings.items()
        )
        or "as planned"
    )


def _by_engine(sweep: SweepPlan) -> Iterator[tuple[dict[str, FlagValue], list[dict[str, FlagValue]]]]:
    """Engine flags with all settings to be measured under them, so that one start serves many points."""
    flags = {name: values for name, values in sweep.axes.items() if name.startswith(ENGINE)}
    others = {name: values for name, values in sweep.axes.items() if not name.startswith(ENGINE)}
    settings = [dict(zip(others, chosen, strict=True)) for chosen in itertools.product(*others.values())]
    for chosen in itertools.product(*flags.values()):
        yield dict(zip(flags, chosen, strict=True)), settings


def _engine(sweep: SweepPlan, flags: dict[str, FlagValue], log: Path) -> AbstractContextManager[Any]:
    if sweep.engine is None:
        return nullcontext()
    command = with_flags(
        sweep.engine.command, {name.removeprefix(ENGINE): value for name, value in flags.items()}
    )
    engine = sweep.engine
    start = Start(tuple(command), engine.env, tuple(engine.cores), engine.ready_s, engine.ready_path)
    return running(start, sweep.plan.base_url, log)


def _measure(
    sweep: SweepPlan,
    settings: dict[str, FlagValue],
    folder: Path,
    number: int,
    spec: Spec,
    say: Callable[[str], None],
) -> Iterator[SweepPoint]:
    search = sweep.search
    if search is None:
        yield _point(sweep, settings, sweep.seconds, folder / f"point-{number:03d}", spec)
        return
    low, high = search.low, search.high
    for offset in itertools.count():
        level = (low, high)[offset] if offset < 2 else math.sqrt(low * high)
        tried, seconds = {**settings, search.axis: level}, sweep.seconds
        if search.axis == "rate":
            samples = math.ceil(spec.gate_min_samples / smallest_share(sweep.plan, spec.gates))
            seconds = enough_seconds(sweep.plan, level, seconds, samples)
        if seconds > sweep.seconds:
            say(f"{label_of(tried)}: {seconds:.0f} s, so that {spec.gate_min_samples} samples can come")
        point = _point(sweep, tried, seconds, folder / f"point-{number + offset:03d}", spec)
        yield point
        if point.void or (offset == 0 and not point.kept) or (offset == 1 and point.kept):
            return  # nothing is told here, or nothing in the range keeps the promise, or all of it does
        if offset >= 2:
            low, high = (level, high) if point.kept else (low, level)
        if offset >= 1 and high / low <= 1 + search.tolerance:
            return


def _point(
    sweep: SweepPlan, settings: dict[str, FlagValue], seconds: float, folder: Path, spec: Spec
) -> SweepPoint:
    plan = apply(sweep.plan, settings, seconds)
    # No server tells all its flags, and one of other flags is another thing to compare with.
    flags = {name: str(value) for name, value in settings.items() if name.startswith(ENGINE)}
    identity.save(identity.collect(plan, flags), folder)
    result = run_load(plan, folder)
    verdict = judge([result], None, spec)
    broken = [check for check in verdict.checks if check.outcome is not GateExit.PASSED]
    why = tuple(f"{check.name}: {check.detail}" for check in broken)
    on_errors = {gate.id for gate in spec.gates if gate.sli == "errors"}
    many_errors = any(c.outcome is GateExit.FAILED and c.name in on_errors for c in broken)
    summary = summarise(result, spec.load.client)
    return SweepPoint(settings, folder, verdict.code, why, many_errors, summary, _quality(result))


def _quality(result: LoadResult) -> Figure | None:
    """Share of right answers. Asking a question again is no new evidence, so the interval is over the questions."""
    if result.plan.prompts_file is None or not result.plan.keep_text:
        return None
    found = score(result.records, read_questions(result.plan.prompts_file))
    return None if found.ratio is None else ratio(found.ratio * found.questions, found.questions)


def scored(points: list[SweepPoint], scores: Scores | None) -> list[SweepPoint]:
    """*points* with the user's own *scores* for their quality, where there are any."""
    if scores is None:
        return points
    return [replace(point, quality=Figure(scores.of(point.settings))) for point in points]


def _as_json(point: SweepPoint) -> dict[str, Any]:
    return {
        "settings": point.settings,
        "folder": point.folder.name,
        "kept": point.kept,
        "code": point.code.name.lower(),
        "why": point.why,
        "many_errors": point.many_errors,
        "quality": None if point.quality is None else asdict(point.quality),
        "summary": point.summary,
    }


def read_points(folder: Path) -> list[SweepPoint]:
    """Points that `run_sweep` left in *folder*."""
    found = json.loads((folder / "points.json").read_text(encoding="utf-8"))
    return [
        SweepPoint(
            one["settings"],
            folder / one["folder"],
            GateExit[one["code"].upper()],
            tuple(one["why"]),
            one["many_errors"],
            one["summary"],
            None if one["quality"] is None else Figure(**one["quality"]),
        )
        for one in found
    ]
