"""Where a stack runs: how long samples are kept, and what of slo.yaml is different there."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field, model_validator

from slo.base import Id, PositiveSeconds, Strict

KEY = "environments"
IN_FORCE = "environment"
FIXED = frozenset({KEY, IN_FORCE, "version"})


class Downsample(Strict):
    """Samples older than *after_days* are thinned to one each *resolution*, where the store can do that."""

    after_days: int = Field(gt=0)
    resolution: PositiveSeconds


class Environment(Strict):
    """One environment; the first is the one that the rest of the file describes."""

    id: Id
    retention_days: int = Field(gt=0)
    downsampling: tuple[Downsample, ...] = ()
    changes: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _thins_in_order(self) -> "Environment":
        days = [step.after_days for step in self.downsampling]
        if days != sorted(set(days)) or (days and days[-1] >= self.retention_days):
            raise ValueError(
                f"downsampling after {days} days with {self.retention_days} days kept; list growing ages under that"
            )
        if wrong := FIXED & set(self.changes):
            raise ValueError(f"changes may not hold {min(wrong)!r}; remove it")
        return self


def laid_over(raw: Any, environment: str | None) -> Any:
    """
    The parsed file with the changes of *environment* in it: mappings are merged, everything else is replaced.

    Without a name: what the file itself names, else its first. Raises ValueError for a name that it lacks.
    Anything malformed is returned as it is, for the validation to name.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get(KEY), list):
        return raw
    known = {str(e.get("id")): e for e in raw[KEY] if isinstance(e, dict)}
    wanted = environment or raw.get(IN_FORCE) or next(iter(known), None)
    if wanted is None:
        return raw
    if wanted not in known:
        raise ValueError(f"no environment {wanted!r}; it has {', '.join(known)}")
    changes = known[wanted].get("changes")
    own = {k: v for k, v in changes.items() if k not in FIXED} if isinstance(changes, dict) else {}
    merged = _merged(raw, own)
    return {**merged, IN_FORCE: wanted}


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = dict(base)
    for key, value in over.items():
        old = both.get(key)
        both[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return both
