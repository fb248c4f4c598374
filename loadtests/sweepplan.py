"""What a sweep measures: its axes, how its engine is started, and the plan of each point.

Axes named `engine.<flag>` restart the engine with that flag; other axes change the plan (`rate` and `users` set
the arrivals, anything else a field of it).
"""

import json
import math
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from loadtests.engineproc import FlagValue
from loadtests.plan import Lane, LoadPlan, Tenant, parse_plan
from loadtests.shapes import flat
from slo.base import Strict
from slo.delivery import Gate

ENGINE = "engine."
_LEVELS = {"rate": "open", "users": "closed"}


class Engine(Strict):
    """How the engine is started; `command` gets the flags of a point appended. Its URL is the plan's base_url."""

    command: list[str] = Field(min_length=1)
    env: dict[str, str] = Field(default_factory=dict)
    cores: list[int] = Field(default_factory=list)
    ready_s: float = Field(default=180.0, gt=0)
    ready_path: str = "/health"


class Search(Strict):
    """Bisect the rate (or users) between two levels until they are within `tolerance` of each other.

    A rate that is too low for `gate_min_samples` answers in the sweep's seconds is run longer.
    """

    axis: Literal["rate", "users"] = "rate"
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    tolerance: float = Field(default=0.1, gt=0, lt=1)

    @model_validator(mode="after")
    def _ordered(self) -> "Search":
        if self.high <= self.low:
            raise ValueError(f"high {self.high:g} is not above low {self.low:g}")
        return self


class Scores(Strict):
    """A quality score of the user's own, such as an evaluation harness gave, for settings of a sweep.

    A row of `values` names axes with one of their values each, and the `score` of every point that has them.
    """

    name: str = "score"
    better: Literal["higher", "lower"] = "higher"
    values: list[dict[str, FlagValue]] = Field(min_length=1)

    @model_validator(mode="after")
    def _rows_alike(self) -> "Scores":
        for number, row in enumerate(self.values):
            if isinstance(row.get("score"), str | bool | None):
                raise ValueError(f"values.{number}: write `score: NUMBER` beside the axes")
            if row.keys() != self.values[0].keys() or len(row) < 2:
                raise ValueError(f"values.{number}: every row names the same axes, one at least, and a score")
            if any(self._settings(row) == self._settings(other) for other in self.values[:number]):
                raise ValueError(f"values.{number}: {self._settings(row)} has a score already")
        return self

    def of(self, settings: dict[str, FlagValue]) -> float | None:
        """The score of a point; None when no row is for it."""
        for row in self.values:
            if self._settings(row).items() <= settings.items():
                return float(row["score"])
        return None

    @staticmethod
    def _settings(row: dict[str, FlagValue]) -> dict[str, FlagValue]:
        return {name: value for name, value in row.items() if name != "score"}


class SweepPlan(Strict):
    """Every combination of the axes' values is one setting; with `search` each setting is searched along one axis."""

    plan: LoadPlan
    seconds: float = Field(gt=0)
    axes: dict[str, list[FlagValue]] = Field(default_factory=dict)
    engine: Engine | None = None
    search: Search | None = None
    scores: Scores | None = None

    @model_validator(mode="after")
    def _usable(self) -> "SweepPlan":
        if any(name.startswith(ENGINE) for name in self.axes) and self.engine is None:
            raise ValueError(
                "an axis engine.<flag> restarts the engine, so `engine` must say how it is started"
            )
        if self.search is not None and _LEVELS.keys() & self.axes.keys():
            raise ValueError("a searched level cannot be an axis too; remove rate and users from the axes")
        if empty := [name for name, values in self.axes.items() if not values]:
            raise ValueError(f"axes.{empty[0]} has no value")
        return self

    @model_validator(mode="after")
    def _quality_means_something(self) -> "SweepPlan":
        given = {**self.plan.model_dump(), **self.axes}
        if given["prompts_file"] and "prompt_tokens" in self.axes and not given["truncate_prompts"]:
            raise ValueError(
                "axes.prompt_tokens does nothing to the prompts of a prompts_file; plan.truncate_prompts: true cuts "
                "them to so many words"
            )
        if self.scores is None:
            return self
        if given["prompts_file"] and given["keep_text"]:
            raise ValueError(
                "scores and a prompts_file with keep_text are two figures of quality; leave one out"
            )
        for row in self.scores.values:
            for name, value in row.items():
                if name != "score" and value not in self.axes.get(name, ()):
                    raise ValueError(
                        f"scores: {name}: {value!r} is not among the axes' values; it would score no point"
                    )
        return self


def apply(plan: LoadPlan, settings: dict[str, FlagValue], seconds: float) -> LoadPlan:
    """The plan of one point: `rate` and `users` set the level of its arrivals, other names are fields; raises PlanError."""
    raw: dict[str, Any] = json.loads(plan.model_dump_json())
    for name, value in settings.items():
        if name in _LEVELS:
            raw["arrival"] |= {"kind": _LEVELS[name], "segments": flat(float(value), seconds)}
        elif not name.startswith(ENGINE):
            raw[name] = value
    return parse_plan(raw, "sweep")


def enough_seconds(plan: LoadPlan, rate_per_s: float, seconds: float, samples: int) -> float:
    """*seconds*, or longer where *rate_per_s* is so low that *samples* answers would not surely come.

    "Surely" is three standard deviations of the arrivals. Requests that hang up on purpose are no samples.
    """
    if plan.abort_share == 1:
        return seconds
    bursty = plan.arrival.process == "gamma"
    dispersion = max(1.0, 1 / plan.arrival.burstiness) if bursty else 1.0
    root = (3 * math.sqrt(dispersion) + math.sqrt(9 * dispersion + 4 * samples)) / 2
    return max(seconds, root**2 / (1 - plan.abort_share) / rate_per_s)


def smallest_share(plan: LoadPlan, gates: Sequence[Gate]) -> float:
    """The share of the requests that the gate on the rarest lane and tenant judges; 1 where all judge all.

    A lane or tenant that the plan does not have gets no request however long it runs, and does not count.
    """
    return min(
        (_share(gate.lane, plan.lanes) * _share(gate.tenant, plan.tenants) for gate in gates), default=1.0
    )


def _share(name: str | None, parts: Sequence[Lane | Tenant]) -> float:
    wanted = sum(part.share for part in parts if part.name == name)
    return wanted / sum(part.share for part in parts) if wanted else 1.0
