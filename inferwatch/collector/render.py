"""slo.yaml -> the lines of otel-collector/config.yaml that end in ``# gen: …``; the rest of the file is its own."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from slo import spec as slo_spec
from slo.names import rag
from slo.spec import Spec

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = "otel-collector/config.yaml"
_LINE = re.compile(r"^(?P<head>\s*(?:- )?(?:[\w.]+: |- )?(?:&\w+ )?)(?P<value>.*?) # gen: (?P<name>[\w -]+)$")
# A trace is in the share by the last four hexadecimal digits of its id, which are random by the W3C's standard.
SHARE_DIGITS = 4
EVERY_TRACE = "staging"


class MarkerError(ValueError):
    """config.yaml has lost a marked line, or has one that nothing writes."""


def request_threshold_seconds(spec: Spec) -> float:
    """The lowest promised duration of a whole request."""
    return _lowest(spec, "request_duration")


def first_token_threshold_seconds(spec: Spec) -> float:
    """The lowest promised time to the first token."""
    return _lowest(spec, "time_to_first_token")


def share_bound(ratio: float) -> str:
    """The hexadecimal digits under which a trace id is in a share of *ratio*: 0.01 -> "028f" (655 of 65536)."""
    whole = 16**SHARE_DIGITS
    return f"{min(round(ratio * whole), whole - 1):0{SHARE_DIGITS}x}"


def _lowest(spec: Spec, sli: str) -> float:
    found = [
        slo.threshold_seconds
        for service in spec.services
        for slo in service.slos
        if getattr(slo, "sli", None) == sli and slo.threshold_seconds is not None
    ]
    if not found:
        raise MarkerError(f"slo.yaml promises no {sli}; the collector cannot tell a slow trace")
    return min(found)


def _duration(seconds: float) -> str:
    """A bound in Go's notation, in the largest unit that leaves no fraction: 0.0025 -> 2500us, 2.0 -> 2s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        count = seconds / size
        if abs(count - round(count)) < 1e-9:
            return f"{round(count)}{unit}"
    raise MarkerError(f"{seconds:g} s is finer than a microsecond; round it")


def _in_share(spec: Spec) -> str:
    start = 32 - SHARE_DIGITS
    return (
        f'Substring(span.trace_id.string, {start}, {SHARE_DIGITS}) < "{share_bound(spec.traces.keep_ratio)}"'
    )


def _span_seconds_over(seconds: float) -> str:
    return f"(span.end_time_unix_nano - span.start_time_unix_nano) > {round(seconds * 1e9)}"


def _slow_stages(spec: Spec) -> str:
    """A stage over its own threshold, whatever the whole request took."""
    parts = [
        f'(span.attributes["rag.stage"] == "{stage.id}" and {_span_seconds_over(stage.threshold_seconds)})'
        for stage in spec.rag.stages
        if stage.id != rag.STAGE_REQUEST
    ]
    return " or ".join(parts)


def _kept_for_certain(spec: Spec) -> str:
    return " or ".join(
        (
            f'"${{env:INFERWATCH_ENVIRONMENT:-production}}" == "{EVERY_TRACE}"',
            _in_share(spec),
            "span.status.code == STATUS_CODE_ERROR",
            _span_seconds_over(request_threshold_seconds(spec)),
            _slow_stages(spec),
        )
    )


def values(spec: Spec) -> Mapping[str, str]:
    """The text of each marked line, by the marker's name."""
    bounds = [float(bound) for bound in rag.BOUNDS_SECONDS]
    makers: Mapping[str, Callable[[], str]] = {
        "bounds as durations": lambda: f"[{', '.join(map(_duration, bounds))}]",
        "bounds in seconds": lambda: f"[{', '.join(f'{b:g}' for b in bounds)}]",
        "scrape interval": lambda: f"{spec.intervals.scrape_seconds:g}s",
        "request threshold": lambda: f"{round(request_threshold_seconds(spec) * 1000)}",
        "first token threshold": lambda: _quoted(_slow_first_token(spec)),
        "slow stages": lambda: _quoted(_slow_stages(spec)),
        "share": lambda: _quoted(_in_share(spec)),
        "exemplar without a kept trace": lambda: _quoted(f"not ({_kept_for_certain(spec)})"),
        "longest request": lambda: f"{spec.traces.longest_request:g}s",
        "settle": lambda: f"{spec.traces.settle:g}s",
        "queue": lambda: f"{spec.traces.queue_mib * 1024 * 1024}",
    }
    return {name: make() for name, make in makers.items()}


def _slow_first_token(spec: Spec) -> str:
    limit = f"{first_token_threshold_seconds(spec):g}"
    names = ("gen_ai.latency.time_to_first_token", "gen_ai.response.time_to_first_chunk")
    return " or ".join(f'span.attributes["{name}"] > {limit}' for name in names)


def _quoted(condition: str) -> str:
    return "'" + condition.replace("'", "''") + "'"


def rendered(text: str, spec: Spec) -> str:
    """*text* with each marked line brought up to the spec; MarkerError when markers and values do not match."""
    wanted = values(spec)
    seen: set[str] = set()
    lines = []
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            name = match["name"]
            if name not in wanted:
                raise MarkerError(f"{FILE}: nothing writes `# gen: {name}`; it is one of {', '.join(wanted)}")
            seen.add(name)
            line = f"{match['head']}{wanted[name]} # gen: {name}"
        lines.append(line)
    if missing := sorted(set(wanted) - seen):
        raise MarkerError(f"{FILE}: no line is marked `# gen: {missing[0]}`; restore it from git")
    return "\n".join(lines) + "\n"


def write(*, check: bool, root: Path = ROOT) -> list[str]:
    """Bring the file up to slo.yaml, or only compare; return its path when it was stale."""
    path = root / FILE
    old = path.read_text(encoding="utf-8")
    new = rendered(old, slo_spec.load(root / "slo.yaml"))
    if new == old:
        return []
    if not check:
        path.write_text(new, encoding="utf-8")
    return [FILE]
