"""A grid over rates and engine flags, or a search for the highest rate that keeps the promise -> measured points.

The promise is what the latency and error gates of slo.yaml say.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtests import identity
from loadtests.engineproc import FlagValue, Start, running, with_flags
from loadtests.gates import GateExit, judge
from loadtests.quality import read_questions, score
from loadtests.report import summarise
from loadtests.run import LoadResult, read_result, run_load
from loadtests.sweepplan import ENGINE, SweepPlan, apply
from slo.spec import Spec


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One measured setting. `kept`: the latency and error gates passed; `code` says why not."""

    settings: dict[str, FlagValue]
    folder: Path
    kept: bool
    code: GateExit
    summary: dict[str, Any]
    quality: float | None

    @property
    def label(self) -> str:
        """The settings in short."""
        return (
            " ".join(f"{name.removeprefix(ENGINE)}={value}" for name, value in self.settings.items())
            or "as planned"
        )

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
                for point in _measure(sweep, {**flags, **setting}, folder, len(points), spec):
                    say(f"{point.label}: {'kept' if point.kept else point.code.name.lower()}")
                    points.append(point)
                    _keep(points, folder)
    return points


def _keep(points: list[SweepPoint], folder: Path) -> None:
    text = json.dumps([_as_json(point) for point in points], indent=1)
    partial = folder / "points.partial"
    partial.write_text(text, encoding="utf-8")
    partial.replace(folder / "points.json")


def highest_kept(points: list[SweepPoint], axis: str) -> dict[str, float]:
    """Setting (without *axis*) → highest level that kept the promise; settings that never did are left out."""
    best: dict[str, float] = {}
    for point in points:
        rest = {name: value for name, value in point.settings.items() if name != axis}
        name = " ".join(f"{key.removeprefix(ENGINE)}={value}" for key, value in rest.items()) or "as planned"
        if point.kept:
            best[name] = max(best.get(name, 0.0), float(point.settings[axis]))
    return best


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
    sweep: SweepPlan, settings: dict[str, FlagValue], folder: Path, number: int, spec: Spec
) -> Iterator[SweepPoint]:
    search = sweep.search
    if search is None:
        yield _point(sweep, settings, folder / f"point-{number:03d}", spec)
        return
    low, high = search.low, search.high
    for offset in itertools.count():
        level = (low, high)[offset] if offset < 2 else math.sqrt(low * high)
        point = _point(sweep, {**settings, search.axis: level}, folder / f"point-{number + offset:03d}", spec)
        yield point
        if (offset == 0 and not point.kept) or (offset == 1 and point.kept):
            return  # nothing in the range keeps the promise, or all of it does
        if offset >= 2:
            low, high = (level, high) if point.kept else (low, level)
        if offset >= 1 and high / low <= 1 + search.tolerance:
            return


def _point(sweep: SweepPlan, settings: dict[str, FlagValue], folder: Path, spec: Spec) -> SweepPoint:
    plan = apply(sweep.plan, settings, sweep.seconds)
    identity.save(identity.collect(plan), folder)
    result = run_load(plan, folder)
    code = judge([result], None, spec).code
    summary = summarise(result, spec.load.client)
    return SweepPoint(settings, folder, code is GateExit.PASSED, code, summary, _quality(result))


def _quality(result: LoadResult) -> float | None:
    if result.plan.prompts_file is None or not result.plan.keep_text:
        return None
    return score(result.records, read_questions(result.plan.prompts_file)).ratio


def _as_json(point: SweepPoint) -> dict[str, Any]:
    return {
        "settings": point.settings,
        "folder": point.folder.name,
        "kept": point.kept,
        "code": point.code.name.lower(),
        "quality": point.quality,
        "summary": point.summary,
    }


def read_points(folder: Path) -> list[SweepPoint]:
    """Points that `run_sweep` left in *folder*."""
    found = json.loads((folder / "points.json").read_text(encoding="utf-8"))
    return [
        SweepPoint(
            one["settings"],
            folder / one["folder"],
            one["kept"],
            GateExit[one["code"].upper()],
            one["summary"],
            one["quality"],
        )
        for one in found
    ]


def results(points: list[SweepPoint]) -> list[tuple[str, LoadResult]]:
    """Each point's label and run, for comparison."""
    return [(point.label, read_result(point.folder)) for point in points]
