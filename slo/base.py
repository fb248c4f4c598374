"""What every part of the spec shares: strict frozen models, ids, durations in seconds."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from slo.duration import parse_seconds


class Strict(BaseModel):
    """Frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


def _seconds(value: object) -> object:
    return parse_seconds(value) if isinstance(value, str) else value


Id = Annotated[str, Field(pattern=r"^[a-z0-9]+([-_][a-z0-9]+)*$")]
Seconds = Annotated[int, BeforeValidator(_seconds), Field(ge=0)]
PositiveSeconds = Annotated[int, BeforeValidator(_seconds), Field(gt=0)]
Ratio = Annotated[float, Field(ge=0, le=1)]
OpenRatio = Annotated[float, Field(gt=0, lt=1)]


def repeated(ids: list[str]) -> list[str]:
    """Return the ids that stand more than once, in order of first sight."""
    return [i for n, i in enumerate(ids) if i in ids[:n]]
