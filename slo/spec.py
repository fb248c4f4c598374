"""slo.yaml -> a frozen Spec; every error names file, key path, value and mend."""

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from slo.analysis import Analysis
from slo.base import Strict, repeated
from slo.delivery import Gate, GateTest, Intervals, Load, Route
from slo.environments import Environment, laid_over
from slo.node import Node
from slo.objectives import Budget, Service
from slo.rag import Rag
from slo.signals import Canary, Drift, Joint, Scaling, Signal, States
from slo.traces import Traces
from slo.trust import Latency, Links, Stack, Trust

DEFAULT_PATH = Path(__file__).resolve().parent.parent / "slo.yaml"


class SpecError(ValueError):
    """slo.yaml cannot be used; the text has one line a fault."""


class Spec(Strict):
    """The whole of slo.yaml."""

    version: Literal[1]
    intervals: Intervals
    budget: Budget
    services: tuple[Service, ...] = Field(min_length=1)
    states: States
    canary: Canary
    signals: tuple[Signal, ...]
    latency: Latency
    trust: Trust
    stack: Stack
    links: Links
    drift: Drift
    joint: Joint
    load: Load
    gates: tuple[Gate, ...]
    gate_min_samples: int = Field(gt=0)
    gate_test: GateTest
    node: Node
    rag: Rag
    traces: Traces
    scaling: Scaling
    analysis: Analysis
    routes: tuple[Route, ...]
    environments: tuple[Environment, ...] = Field(min_length=1)
    # Set by load(): the environment whose changes are in this spec.
    environment: str = ""

    @model_validator(mode="after")
    def _ids_and_routes(self) -> "Spec":
        for what, ids in (
            ("services", [s.id for s in self.services]),
            ("signals", [s.id for s in self.signals]),
            ("gates", [g.id for g in self.gates]),
            ("routes", [r.severity for r in self.routes]),
            ("environments", [e.id for e in self.environments]),
        ):
            if twice := repeated(list(ids)):
                raise ValueError(f"{what}: {twice[0]!r} stands twice; ids are unique, rename or remove one")
        if missing := {"page", "ticket", "warning"} - {r.severity for r in self.routes}:
            raise ValueError(f"routes: no route for severity {', '.join(sorted(missing))}; add one each")
        return self

    @model_validator(mode="after")
    def _environment_holds(self) -> "Spec":
        if self.retention_days < self.budget.period_days:
            raise ValueError(
                f"{self.environment or 'the first environment'} keeps {self.retention_days} days and the budget's "
                f"period is {self.budget.period_days}; keep more, or change budget.period_days there"
            )
        times, states = self.intervals, self.states
        once = times.scrape_seconds + times.evaluation_seconds + times.page_group_wait_seconds
        down = once + times.scrape_timeout_seconds + max(states.down.for_, 0)
        hung = once + states.hung.window + states.hung.for_
        for what, seconds in (("an engine that is down", down), ("a hang", hung)):
            if seconds > times.notification_promise_seconds:
                raise ValueError(
                    f"intervals.notification_promise_seconds {times.notification_promise_seconds}: {what} can take "
                    f"{seconds:g} s to be notified; promise more, or shorten intervals"
                )
        return self

    @property
    def retention_days(self) -> int:
        """How long samples are kept in the environment in force."""
        return self._in_force().retention_days

    def _in_force(self) -> Environment:
        return next((e for e in self.environments if e.id == self.environment), self.environments[0])

    def signal(self, signal_id: str) -> Signal:
        """Return the early signal of that id.

        Raises KeyError when slo.yaml has none.
        """
        for signal in self.signals:
            if signal.id == signal_id:
                return signal
        raise KeyError(f"slo.yaml has no signal {signal_id!r}; add it under signals")

    def service(self, service_id: str) -> Service:
        """Return the service of that id.

        Raises KeyError when slo.yaml has none.
        """
        for service in self.services:
            if service.id == service_id:
                return service
        raise KeyError(f"slo.yaml has no service {service_id!r}; it has {[s.id for s in self.services]}")


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML keeps the last of two equal keys without a word; here that is an error."""


def _unique_mapping(loader: _UniqueKeyLoader, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _ in node.value]
    if twice := repeated(keys):
        raise SpecError(f"line {node.start_mark.line + 1}: key {twice[0]!r} stands twice; remove one")
    return loader.construct_mapping(node, deep=deep)


_UniqueKeyLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _unique_mapping)


def load(path: Path = DEFAULT_PATH, environment: str | None = None) -> Spec:
    """Read and validate a spec file, as it is in *environment* (its first, when left out).

    Raises SpecError naming *path*, the key path, the value and what to do.
    """
    return parse(_read(path, environment), source=str(path))


def text(path: Path = DEFAULT_PATH, environment: str | None = None) -> str:
    """Return the file as it is in *environment*, as YAML for a machine; comments are lost. Raises SpecError."""
    return yaml.safe_dump(_read(path, environment), sort_keys=False, width=110)


def _read(path: Path, environment: str | None) -> object:
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeyLoader)
        return laid_over(raw, environment)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from error
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from None
    except yaml.YAMLError as error:
        raise SpecError(f"{path}: not valid YAML: {error}") from error
    except ValueError as error:
        raise SpecError(f"{path}: {error}") from None


def parse(raw: object, source: str = "slo.yaml") -> Spec:
    """Validate parsed YAML; *source* stands in front of each error.

    Raises SpecError.
    """
    try:
        return Spec.model_validate(raw)
    except ValidationError as error:
        faults: list[dict[str, Any]] = [dict(e) for e in error.errors()]
        # A list whose only item is faulty is also reported as empty; the item's own fault is enough.
        inner = [f["loc"] for f in faults if f["type"] != "too_short"]
        lines = [
            _describe(source, f)
            for f in faults
            if f["type"] != "too_short" or not any(loc[: len(f["loc"])] == f["loc"] for loc in inner)
        ]
        raise SpecError("\n".join(lines)) from None


_MENDS = {
    "extra_forbidden": "unknown key; remove it or check its spelling",
    "missing": "missing; add it",
}


def _describe(source: str, error: dict[str, Any]) -> str:
    path = ""
    for part in error["loc"]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else str(part)
    mend = _MENDS.get(error["type"], error["msg"].removeprefix("Value error, "))
    value = error.get("input")
    shown = (
        ""
        if error["type"] == "missing" or isinstance(value, dict | list | tuple | Strict)
        else f": {value!r}"
    )
    return f"{source}: {path or 'top level'}{shown}: {mend}"
