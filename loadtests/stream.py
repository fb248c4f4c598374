"""Server-sent events of an OpenAI-shaped stream, with the times they came -> first token, last token, usage, failure.

Stamps are integer nanoseconds on whatever clock the caller uses. A token event is an event with non-empty
text in any channel: content, reasoning, a tool call's name or arguments, a completion's text.
"""

import itertools
import json
from dataclasses import dataclass
from typing import Any

from loadtests.sse import Event, SseError, SseParser

MAX_MESSAGE_CHARS = 300
_MAX_TYPE_CHARS = 64
_TEXT_KEYS = ("content", "reasoning_content", "reasoning", "refusal", "text")
_CONTENT_KEYS = frozenset({"content", "text"})
_FAILED_FINISH = frozenset({"abort", "error"})
_MOST_TOKENS = 2**63 - 1  # what a column of a record file can hold


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a request failed: *kind* is ours (a short list), *type* the server's own class of error, *message* its text."""

    kind: str
    type: str = ""
    message: str = ""

    @property
    def name(self) -> str:
        """What failures are grouped by; never the message, which is different every time."""
        return f"{self.kind}:{self.type}" if self.type else self.kind


@dataclass(frozen=True, slots=True)
class Usage:
    """The server's own token counts; None where it did not say."""

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class ShapeError(ValueError):
    """JSON that is no answer of this API; the message names the part."""


def read_json(text: str | bytes) -> Any:
    """Parsed JSON; ValueError for what is none, or nested deeper than anyone means."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_objects(value: object, name: str) -> list[dict[str, Any]]:
    """A list of objects, empty when it is missing; raises ShapeError for anything else."""
    if not value:
        return []
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ShapeError(f"{name} is not a list of objects: {str(value)[:MAX_MESSAGE_CHARS]}")
    return value


def read_object(value: object, name: str) -> dict[str, Any]:
    """An object, empty when it is missing; raises ShapeError for anything else."""
    if not value:
        return {}
    if not isinstance(value, dict):
        raise ShapeError(f"{name} is not an object: {str(value)[:MAX_MESSAGE_CHARS]}")
    return value


def read_finish(value: object) -> tuple[str | None, Failure | None]:
    """(finish reason, the failure that it is): engines end an answer they gave up with `abort` or `error`."""
    if not value:
        return None, None
    reason = str(value)[:_MAX_TYPE_CHARS]
    failed = reason in _FAILED_FINISH
    return reason, Failure(
        "stream_error", f"finish_{reason}", "the server ended the answer"
    ) if failed else None


def read_usage(value: object) -> Usage | None:
    """A `usage` object of the OpenAI API; None when there is none, and None for a count that can be none."""
    if not isinstance(value, dict):
        return None
    details = value.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    counts = (value.get("prompt_tokens"), value.get("completion_tokens"), cached)
    return Usage(*(count if _is_count(count) else None for count in counts))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


def read_error(body: object, *, named_error: bool = False) -> Failure | None:
    """The error that a JSON body or event carries: an object, TGI's bare string, or `object: error`; else None."""
    if not isinstance(body, dict):
        return Failure("stream_error", "unknown", str(body)[:MAX_MESSAGE_CHARS]) if named_error else None
    error = body.get("error")
    if isinstance(error, dict):
        kind, message = error.get("type") or error.get("code"), error.get("message", "")
    elif error:
        kind, message = body.get("error_type") or body.get("type"), error
    elif body.get("object") == "error" or named_error:
        kind, message = body.get("type") or body.get("code"), body.get("message", "")
    else:
        return None
    return Failure("stream_error", str(kind or "unknown")[:_MAX_TYPE_CHARS], str(message)[:MAX_MESSAGE_CHARS])


class StreamMeter:
    """What one answer stream meant and when; feed it reads as they come, then `finish` when the body is complete.

    `failure` is set at the first sign of failure and never cleared: an error object inside a 200 stream,
    an `event: error`, data that is not JSON, or an end without a finish reason and without `[DONE]`.
    """

    def __init__(self, *, keep_text: bool = False) -> None:
        self._parser = SseParser()
        self._keep_text = keep_text
        self._texts: list[str] = []
        self._shape: tuple[bytes, bytes, int] | None = None
        self.token_stamps_ns: list[int] = []
        self.first_content_ns: int | None = None
        self.usage: Usage | None = None
        self.finish_reason: str | None = None
        self.failure: Failure | None = None
        self.done_seen = False

    def feed(self, data: bytes, stamp_ns: int) -> None:
        """Take body bytes that arrived at *stamp_ns*."""
        try:
            events = self._parser.feed(data)
        except SseError as error:
            self._fail(Failure("protocol", "sse", str(error)))
            return
        for event in events:
            if self._shape is not None and not self.done_seen and _same_shape(event, self._shape):
                self.token_stamps_ns.append(stamp_ns)
            else:
                self._interpret(event, stamp_ns)

    def finish(self) -> None:
        """The body ended as HTTP says it should; decides whether the answer was whole."""
        if not self.done_seen and self.finish_reason is None:
            lost = (
                "an unfinished event was discarded" if self._parser.pending else "no finish reason, no [DONE]"
            )
            self._fail(Failure("truncated", "", f"the stream ended early: {lost}"))

    @property
    def text(self) -> str:
        """The answer itself, without reasoning and tool calls, as scorers read it; only with keep_text."""
        return "".join(self._texts)

    @property
    def output_tokens(self) -> tuple[int | None, str | None]:
        """Output tokens and where the number is from: "server" (usage) or "estimated" (one a chunk, a lower bound)."""
        if self.usage is not None and self.usage.output_tokens is not None:
            return self.usage.output_tokens, "server"
        if self.token_stamps_ns:
            return len(self.token_stamps_ns), "estimated"
        return None, None

    @property
    def chunk_gaps_ns(self) -> tuple[int, ...]:
        """Times between successive token-carrying chunks; the first token is not a gap."""
        stamps = self.token_stamps_ns
        return tuple(later - earlier for earlier, later in itertools.pairwise(stamps))

    def _fail(self, failure: Failure) -> None:
        if self.failure is None:
            self.failure = failure

    def _interpret(self, event: Event, stamp_ns: int) -> None:
        if self.done_seen:
            return
        if event.data.strip() == b"[DONE]":
            self.done_seen = True
            return
        named_error = event.name == "error"
        try:
            body = read_json(event.text)
        except ValueError:
            if named_error:
                self._fail(Failure("stream_error", "unknown", event.text[:MAX_MESSAGE_CHARS]))
            else:
                self._fail(Failure("bad_json", "", f"not JSON: {event.text[:MAX_MESSAGE_CHARS]}"))
            return
        failure = read_error(body, named_error=named_error)
        if failure is not None:
            self._fail(failure)
        elif isinstance(body, dict):
            try:
                self._read_chunk(body, event.data, stamp_ns)
            except ShapeError as error:
                self._fail(Failure("bad_json", "", str(error)))
        else:
            self._fail(Failure("bad_json", "", f"not an object: {event.text[:MAX_MESSAGE_CHARS]}"))

    def _read_chunk(self, body: dict[str, Any], payload: bytes, stamp_ns: int) -> None:
        usage = read_usage(body.get("usage"))
        if usage is not None:
            self.usage = usage
        found: list[tuple[str, str]] = []
        ended = usage is not None
        for choice in read_objects(body.get("choices"), "choices"):
            reason, failure = read_finish(choice.get("finish_reason"))
            if reason:
                ended = True
                self.finish_reason = reason
            if failure:
                self._fail(failure)
            delta = choice.get("delta")
            found += _channels(delta if isinstance(delta, dict) else choice)
        if not found:
            return
        self.token_stamps_ns.append(stamp_ns)
        if self.first_content_ns is None and any(channel in _CONTENT_KEYS for channel, _ in found):
            self.first_content_ns = stamp_ns
        if self._keep_text:
            self._texts += (text for channel, text in found if channel in _CONTENT_KEYS)
        elif len(found) == 1 and not ended:
            self._shape = _learn_shape(payload, found[0][1])


def _learn_shape(payload: bytes, text: str) -> tuple[bytes, bytes, int] | None:
    """What surrounds the one *text* of a fully parsed event: (bytes before, bytes after, their length).

    A later event of the stream with the same surroundings and no quote or backslash in between is the same
    JSON with another text, so it needs no json.loads, which would cost more than all else done for a chunk.
    """
    if not text.isascii():  # a half of a surrogate pair has no bytes at all
        return None
    quoted = b'"' + text.encode() + b'"'
    if b"\\" in quoted or payload.count(quoted) != 1:
        return None
    start = payload.index(quoted) + 1
    end = start + len(quoted) - 2
    return payload[:start], payload[end:], len(payload) - (end - start)


def _same_shape(event: Event, shape: tuple[bytes, bytes, int]) -> bool:
    payload = event.data
    before, after, length = shape
    if len(payload) <= length or not payload.startswith(before) or not payload.endswith(after):
        return False
    text = payload[len(before) : -len(after)]
    return b'"' not in text and b"\\" not in text and event.name == "message"


def _channels(delta: dict[str, Any]) -> list[tuple[str, str]]:
    """(channel, non-empty text) pairs of a delta, or of a completion's choice."""
    found = [(key, value) for key in _TEXT_KEYS if isinstance(value := delta.get(key), str) and value]
    calls = [*read_objects(delta.get("tool_calls"), "tool_calls"), {"function": delta.get("function_call")}]
    for call in calls:
        function = read_object(call.get("function"), "function")
        text = f"{function.get('name') or ''}{function.get('arguments') or ''}"
        if text:
            found.append(("tool_calls", text))
    return found
