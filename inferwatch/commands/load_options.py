"""What the command line says about a load -> a validated plan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from inferwatch.promapi.transport import Transport
from inferwatch.stack.errors import StackError

if TYPE_CHECKING:
    from loadtests.plan import LoadPlan
    from slo.spec import Spec

_POSITIVE = click.FloatRange(min=0, min_open=True)
_OPTIONS = (
    click.option("--model", help="Model to ask for.  [default: the engine's first]"),
    click.option("--users", type=click.FloatRange(min=1), help="Closed loop: so many clients."),
    click.option("--rate", type=_POSITIVE, help="Open loop: requests per second."),
    click.option(
        "--seconds", type=_POSITIVE, default=60.0, show_default=True, help="With --users or --rate."
    ),
    click.option(
        "--shape",
        help="Open loop over time, such as ramp:1:20:60, steps:1@60,4@120, or pulses:1:50:2:300, which waits for the"
        " full minute.",
    ),
    click.option("--users-shape", help="The same of clients in a closed loop."),
    click.option(
        "--trace", metavar="FORMAT:PATH", help="Replay azure:, burstgpt: or mooncake: a trace file."
    ),
    click.option(
        "--speed", type=_POSITIVE, default=1.0, show_default=True, help="Replay so many times as fast."
    ),
    click.option(
        "--process", default="poisson", show_default=True, help="poisson, constant or gamma:BURSTINESS."
    ),
    click.option("--prompt-tokens", default="128", show_default=True, help="Number or distribution."),
    click.option("--output-tokens", default="64", show_default=True, help="Number or distribution."),
    click.option(
        "--processes", type=click.IntRange(1, 256), default=1, show_default=True, help="Load processes."
    ),
    click.option("--set", "fields", multiple=True, metavar="KEY=JSON", help="Any other field of the plan."),
    click.option(
        "--plan", "plan_file", type=click.Path(dir_okay=False, path_type=Path), help="A whole plan (JSON)."
    ),
)


def load_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that make a plan."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def plan_of(engine: Callable[[], str], wish: dict[str, Any], spec: "Spec") -> "LoadPlan":
    """The plan file, or a plan of the options; *engine* gives the URL when it is needed."""
    from loadtests.plan import parse_plan, read_plan

    if wish["plan_file"]:
        return read_plan(wish["plan_file"])
    url = engine()
    raw = {
        "base_url": url,
        "model": wish["model"] or _first_model(url),
        "arrival": _arrival(wish, spec),
        "prompt_tokens": wish["prompt_tokens"],
        "output_tokens": wish["output_tokens"],
        "processes": wish["processes"],
        **dict(_field(text) for text in wish["fields"]),
    }
    return parse_plan(raw, "options")


def _arrival(wish: dict[str, Any], spec: "Spec") -> dict[str, Any]:
    from loadtests.plan import from_spec
    from loadtests.shape_text import by_the_clock, parse_shape
    from loadtests.shapes import flat

    given = [name for name in ("users", "rate", "shape", "users_shape", "trace") if wish[name]]
    if len(given) > 1:
        names = " and ".join("--" + name.replace("_", "-") for name in given)
        raise click.UsageError(f"{names} are different kinds of arrival; give one of them")
    if not given:
        return from_spec(spec.load).model_dump() | _process(wish)
    kind, value = given[0], wish[given[0]]
    if kind == "trace":
        trace_format, _, path = value.partition(":")
        return {"kind": "trace", "trace_format": trace_format, "trace_path": path, "speed": wish["speed"]}
    try:
        segments = flat(value, wish["seconds"]) if kind in ("users", "rate") else parse_shape(value)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    loop = "closed" if kind.startswith("users") else "open"
    minute = kind in ("shape", "users_shape") and by_the_clock(value)
    process = _process(wish) if loop == "open" else {}
    return {"kind": loop, "segments": segments, "on_the_minute": minute, **process}


def _process(wish: dict[str, Any]) -> dict[str, Any]:
    name, _, burstiness = wish["process"].partition(":")
    return {"process": name, **({"burstiness": burstiness} if burstiness else {})}


def _field(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"--set {text!r}: write it as KEY=JSON")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _first_model(url: str) -> str:
    with Transport(url) as client:
        answer = client.json("GET", "/v1/models")
    models = answer.get("data") if isinstance(answer, dict) else None
    if not models:
        raise StackError(f"{url}/v1/models lists no model; name one with --model")
    return str(models[0]["id"])
