"""A request's traceparent and tracestate headers -> the caller's span context, none, or why it is broken.

W3C Trace Context level 1: versions above 00 are read as far as 00 goes, ff is forbidden, ids of zeros mean nothing.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from opentelemetry.trace import SpanContext, TraceFlags, TraceState

Headers = Mapping[str, str] | Iterable[tuple[str, str]]
REASONS = ("several", "malformed", "version", "zero_id")

_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_MEMBER = re.compile(
    r"([a-z][_0-9a-z*/-]{0,255}|[a-z0-9][_0-9a-z*/-]{0,240}@[a-z][_0-9a-z*/-]{0,13})=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)
MOST_MEMBERS = 32  # of tracestate
_MAX_STATE_CHARACTERS = 8192
_MAX_HEADER_CHARACTERS = 512  # of traceparent; a longer one is not worth reading


class Incoming(NamedTuple):
    """*caller*: valid and remote, or None; *broken*: one of REASONS, or "" (no header at all is not broken)."""

    caller: SpanContext | None = None
    broken: str = ""


def read(headers: Headers) -> Incoming:
    """Judge the headers; an unusable tracestate is dropped and harms nothing, as the standard says."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    parents, states = [], []
    for name, value in pairs:
        lower = name.lower()
        if lower == "traceparent":
            parents.append(value)
        elif lower == "tracestate":
            states.append(value)
    if not parents:
        return Incoming()
    if len(parents) > 1:
        return Incoming(broken="several")
    return _parse(parents[0], states)


def _parse(text: str, states: list[str]) -> Incoming:
    match = _FORM.fullmatch(text.strip(" \t")) if len(text) <= _MAX_HEADER_CHARACTERS else None
    if match is None:
        return Incoming(broken="malformed")
    version, trace, span, flags, more = match.groups()
    if version == "ff":
        return Incoming(broken="version")
    if version == "00" and more:
        return Incoming(broken="malformed")
    trace_id, span_id = int(trace, 16), int(span, 16)
    if not trace_id or not span_id:
        return Incoming(broken="zero_id")
    # Of the flags of a later version only the sampled bit is understood.
    sampled = TraceFlags(int(flags, 16) & TraceFlags.SAMPLED)
    return Incoming(SpanContext(trace_id, span_id, True, sampled, _state(states)))


def _state(states: list[str]) -> TraceState | None:
    """The members, or none at all: the SDK would log whatever a caller wrote into a broken one."""
    text = ",".join(states)
    if not text or len(text) > _MAX_STATE_CHARACTERS:
        return None
    members = [one for one in (part.strip(" \t") for part in text.split(",")) if one]
    keys = [one.partition("=")[0] for one in members]
    whole = all(_MEMBER.fullmatch(one) for one in members)
    if not whole or len(members) > MOST_MEMBERS or len(set(keys)) < len(keys):
        return None
    return TraceState([(key, one.partition("=")[2]) for key, one in zip(keys, members, strict=True)])
