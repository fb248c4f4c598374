"""What to send, how fast and for how long: one validated, frozen plan that also travels as a JSON file."""

import json
import secrets
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    field_validator,
    model_validator,
)

from loadtests.lengths import Lengths
from loadtests.shapes import Segment, flat, steps
from slo.base import Ratio, Strict
from slo.delivery import Load

Endpoint = Literal["chat", "completions", "embeddings", "rag"]
PATHS: dict[str, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "rag": "/v1/rag/answer",
}
RETRIED = (
    "connect_refused",
    "connect_failed",
    "connect_timeout",
    "reset",
    "premature_eof",
    "http_429",
    "http_500",
    "http_502",
    "http_503",
    "http_504",
)


class PlanError(ValueError):
    """The plan cannot be used; one line a fault, with key, value and mend."""


def _lengths(value: object) -> object:
    return Lengths.parse(str(value)) if isinstance(value, str | int) else value


Tokens = Annotated[Lengths, BeforeValidator(_lengths), PlainSerializer(str, return_type=str)]


class Arrival(Strict):
    """When requests are due.

    open: *segments* hold requests per second; a request is due whether or not earlier ones were answered.
    closed: *segments* hold the number of clients, each sending its next request *think_s* after the last answer.
    trace: times (and lengths) come from *trace_path*, sped up by *speed*; see `loadtests.replay`.
    *on_the_minute* lets any of them begin at the next full minute of the wall clock.
    """

    kind: Literal["open", "closed", "trace"]
    segments: tuple[Segment, ...] = ()
    process: Literal["poisson", "constant", "gamma"] = "poisson"
    burstiness: float = Field(default=1.0, gt=0)
    think_s: float = Field(default=0.0, ge=0)
    on_the_minute: bool = False
    trace_path: str | None = None
    trace_format: Literal["azure", "burstgpt", "mooncake"] | None = None
    speed: float = Field(default=1.0, gt=0)

    @model_validator(mode="after")
    def _complete(self) -> "Arrival":
        if self.kind == "trace":
            if not self.trace_path or not self.trace_format:
                raise ValueError("a trace needs trace_path and trace_format (azure, burstgpt or mooncake)")
        elif not self.segments:
            raise ValueError(f"{self.kind} arrivals need segments; give a rate or a number of users")
        for segment in self.segments:
            if segment.duration_s <= 0 or min(segment.start, segment.end) < 0:
                raise ValueError(f"{segment}: the duration must be above 0 and no level below 0")
        return self

    @property
    def duration_s(self) -> float | None:
        """Length of the shape in seconds; None for a trace, which ends with its file."""
        return sum(segment.duration_s for segment in self.segments) if self.segments else None

    @property
    def offered_requests(self) -> float | None:
        """Requests an open arrival process is expected to schedule; None where the server decides."""
        return sum(segment.area for segment in self.segments) if self.kind == "open" else None


class Lane(Strict):
    """A share of the requests that go under one label; `priority` is sent as such (vLLM: lower is sooner)."""

    name: str = Field(min_length=1)
    share: float = Field(gt=0)
    priority: int | None = None


class Tenant(Strict):
    """A share of the requests that belong to one tenant, sent as `user`."""

    name: str = Field(min_length=1)
    share: float = Field(gt=0)


class Retries(Strict):
    """Exponential back-off: base·2ⁿ up to the cap, times a factor drawn from 1 ± jitter, never over the cap.

    Every attempt is recorded.
    """

    max_attempts: int = Field(default=1, ge=1, le=20)
    base_s: float = Field(default=0.1, ge=0.05, le=0.2)
    cap_s: float = Field(default=5.0, ge=2, le=10)
    jitter: float = Field(default=0.25, ge=0.25, le=0.5)
    on: tuple[str, ...] = RETRIED


class LoadPlan(Strict):
    """One load run. Token counts of prompts are aims (a word is about a token); the record has the server's count.

    `prefix_share` is the part of each prompt's tokens taken from one of `prefix_groups` common beginnings, so the
    token-level prefix-cache hit ratio settles near it, less what the engine rounds down to whole blocks and the
    first request of each beginning.
    `random_seed` steers only the client's own choices (times, lengths, labels); no seed is ever sent to the server.
    `run_nonce` steers the words of the prompts and the trace ids: a run with another one, and `write_plan` draws
    one where it is None, finds nothing of itself in a prefix cache. `prompts_file` is sent word for word.
    `drain_s` is how long answers may still take when the last request has been sent.
    Prompts of `prompts_file` are sent whole and `prompt_tokens` means nothing to them, but with `truncate_prompts`
    the last `prompt_tokens` words of each are sent: the question stands at the end, and a beginning is what context
    truncation cuts.
    """

    base_url: str
    model: str = Field(min_length=1)
    arrival: Arrival
    max_requests: int | None = Field(default=None, gt=0)
    prompt_tokens: Tokens = Lengths("constant", (128.0,))
    output_tokens: Tokens = Lengths("constant", (64.0,))
    stream: bool = True
    mix: dict[Endpoint, float] = Field(default={"chat": 1.0}, min_length=1)
    paths: dict[Endpoint, str] = Field(default_factory=dict)
    tenants: tuple[Tenant, ...] = ()
    lanes: tuple[Lane, ...] = ()
    abort_share: Ratio = 0.0
    abort_after_chunks: Tokens = Lengths("uniform", (1.0, 8.0))
    prefix_share: Ratio = 0.0
    prefix_groups: int = Field(default=1, gt=0, le=10_000)
    tools_share: Ratio = 0.0
    tool_choice: Literal["auto", "required"] = "auto"
    reasoning: Literal["default", "on", "off"] = "default"
    ignore_eos: bool = False
    temperature: float = Field(default=0.0, ge=0)
    extra_body: dict[str, Any] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    token_file: str | None = None
    ca_file: str | None = None
    insecure: bool = False
    trace_sampled_share: Ratio = 0.0
    retries: Retries = Retries()
    request_timeout_s: float = Field(default=120.0, gt=0)
    connect_timeout_s: float = Field(default=5.0, gt=0)
    drain_s: float = Field(default=60.0, ge=0)
    keep_alive: bool = True
    kernel_stamps: bool = True
    random_seed: int = 0
    run_nonce: str | None = Field(default=None, min_length=1)
    processes: int = Field(default=1, ge=1, le=256)
    prompts_file: str | None = None
    truncate_prompts: bool = False
    keep_text: bool = False

    @field_validator("base_url")
    @classmethod
    def _is_origin(cls, value: str) -> str:
        parts = urlsplit(value)
        # A port and a name that can be none raise by themselves: here, not at the first request of a run.
        named = (parts.hostname or "").encode("idna") and parts.port != 0
        if parts.scheme not in ("http", "https") or not named or parts.username or parts.query:
            raise ValueError("write it as http://HOST:PORT, without user, query or fragment")
        return value.rstrip("/")

    @field_validator("extra_body")
    @classmethod
    def _no_seed(cls, value: dict[str, Any]) -> dict[str, Any]:
        if "seed" in value:
            raise ValueError("a per-request seed kills the CPU engine of vLLM 0.32; leave it out of load")
        return value

    @model_validator(mode="after")
    def _weights(self) -> "LoadPlan":
        if sum(self.mix.values()) <= 0 or min(self.mix.values()) < 0:
            raise ValueError(f"mix: {self.mix}: weights are at least 0 and one is above 0")
        return self

    @model_validator(mode="after")
    def _a_client_for_each_process(self) -> "LoadPlan":
        if self.arrival.kind == "closed":
            most = max(max(segment.start, segment.end) for segment in self.arrival.segments)
            if self.processes > max(most, 1):
                raise ValueError(
                    f"processes: {self.processes} are more than the {most:g} clients of the closed loop; lower it"
                )
        return self

    @model_validator(mode="after")
    def _has_what_it_cuts(self) -> "LoadPlan":
        if self.truncate_prompts and self.prompts_file is None:
            raise ValueError("truncate_prompts cuts the prompts of a prompts_file; name one")
        return self


def parse_plan(raw: object, source: str = "plan") -> LoadPlan:
    """Validate parsed JSON; raises PlanError with one line a fault."""
    try:
        return LoadPlan.model_validate(raw)
    except ValidationError as error:
        lines = []
        for fault in error.errors():
            path = ".".join(str(part) for part in fault["loc"]) or "top level"
            if fault["type"] == "extra_forbidden":
                lines.append(
                    f"{source}: {path}: no such field; loadtests/plan.py lists them with their meaning"
                )
                continue
            shown = "" if isinstance(fault["input"], dict) else f": {fault['input']!r}"
            lines.append(f"{source}: {path}{shown}: {fault['msg'].removeprefix('Value error, ')}")
        raise PlanError("\n".join(lines)) from None


def read_plan(path: Path) -> LoadPlan:
    """Read a plan file that `write_plan` wrote; raises PlanError."""
    try:
        return parse_plan(json.loads(path.read_text(encoding="utf-8")), str(path))
    except (OSError, ValueError) as error:
        if isinstance(error, PlanError):
            raise
        raise PlanError(f"{path}: cannot be read as a plan: {error}") from error


def fresh_nonce() -> str:
    """A `run_nonce` that no run had."""
    return secrets.token_hex(8)


def write_plan(plan: LoadPlan, path: Path) -> None:
    """Write the plan of one run as JSON, so that the file repeats the run exactly, from any folder.

    It gets a fresh nonce where it has none, and the files that it names get their full paths.
    """
    changes: dict[str, Any] = {"run_nonce": plan.run_nonce or fresh_nonce()}
    for name in ("token_file", "ca_file", "prompts_file"):
        changes[name] = _full_path(getattr(plan, name))
    arrival = {"trace_path": _full_path(plan.arrival.trace_path)}
    changes["arrival"] = plan.arrival.model_copy(update=arrival)
    path.write_text(plan.model_copy(update=changes).model_dump_json(indent=2) + "\n", encoding="utf-8")


def _full_path(name: str | None) -> str | None:
    return name and str(Path(name).absolute())


def closed(users: float, duration_s: float, *, think_s: float = 0.0) -> Arrival:
    """*users* clients in a closed loop for *duration_s* seconds."""
    return Arrival(kind="closed", segments=flat(users, duration_s), think_s=think_s)


def open_loop(rate_per_s: float, duration_s: float, process: str = "poisson") -> Arrival:
    """*rate_per_s* requests a second for *duration_s* seconds, whatever the server does."""
    return Arrival.model_validate(
        {"kind": "open", "segments": flat(rate_per_s, duration_s), "process": process}
    )


def from_spec(load: Load) -> Arrival:
    """The open-loop steps that `load.stages` of slo.yaml lists."""
    stages = [(float(stage.duration), stage.requests_per_second) for stage in load.stages]
    return Arrival(kind="open", segments=steps(stages))
