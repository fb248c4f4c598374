"""Bytes of a server-sent event stream -> whether it held a token, an error, a proper end, and when."""

import json
from typing import Any

_TEXT_KEYS = ("content", "reasoning_content", "reasoning", "refusal")


class Malformed(ValueError):
    """The stream is no stream of completion chunks."""


class TokenStream:
    """Follow one streamed completion; feed it reads as they come, cut anywhere.

    `first_token_at`: seconds on the caller's clock, None until text (or a finished choice) was seen.
    `tokens`, `prompt_tokens`: by the server's own usage, None while it has told none.
    """

    def __init__(self) -> None:
        self.first_token_at: float | None = None
        self.saw_text = False
        self.finished = False
        self.error: str | None = None
        self.tokens: int | None = None
        self.prompt_tokens: int | None = None
        self._pending = b""
        self._event: list[bytes] = []
        self._event_type = b""

    def feed(self, data: bytes, now: float) -> None:
        """Take one read that arrived at *now* (seconds).

        Raises Malformed when an event is not JSON or not a completion chunk.
        """
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self._line(line.removesuffix(b"\r"), now)

    def close(self, now: float) -> None:
        """Take the end of the body: a last event may lack its empty line."""
        if self._pending:
            self._line(self._pending.removesuffix(b"\r"), now)
        self._line(b"", now)

    @property
    def held_token(self) -> bool:
        """Whether a token came: text on any channel, or tokens in the server's usage.

        A token may decode to no text at all (an end mark, half of a character).
        """
        return self.saw_text or bool(self.tokens)

    def _line(self, line: bytes, now: float) -> None:
        if not line:
            event, kind = self._event, self._event_type
            self._event, self._event_type = [], b""
            if event:
                self._dispatch(b"\n".join(event), kind, now)
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._event.append(value)
        elif field == b"event":
            self._event_type = value

    def _dispatch(self, data: bytes, kind: bytes, now: float) -> None:
        if data.strip() == b"[DONE]":
            self.finished = True
            return
        try:
            chunk = json.loads(data)
        except ValueError:
            if kind == b"error":
                self.error = data.decode("utf-8", "replace")
                return
            raise Malformed(f"an event is not JSON: {data[:80]!r}") from None
        if not isinstance(chunk, dict):
            raise Malformed(f"an event is not an object: {data[:80]!r}")
        if kind == b"error" or chunk.get("error"):
            self.error = _message(chunk)
            return
        self._take_choices(chunk, now)
        usage = chunk.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            self.tokens = usage["completion_tokens"]
            if isinstance(usage.get("prompt_tokens"), int):
                self.prompt_tokens = usage["prompt_tokens"]

    def _take_choices(self, chunk: dict[str, Any], now: float) -> None:
        choices = chunk.get("choices")
        if not isinstance(choices, list):
            raise Malformed(f"an event has no list of choices: {str(chunk)[:80]}")
        for choice in choices:
            if not isinstance(choice, dict):
                raise Malformed(f"a choice is not an object: {str(choice)[:80]}")
            if _has_text(choice):
                self.saw_text = True
            if choice.get("finish_reason"):
                self.finished = True
            if self.first_token_at is None and (self.saw_text or choice.get("finish_reason")):
                self.first_token_at = now


def _has_text(choice: dict[str, Any]) -> bool:
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return False
    return bool(delta.get("tool_calls")) or any(delta.get(key) for key in _TEXT_KEYS)


def _message(chunk: dict[str, Any]) -> str:
    error = chunk.get("error", chunk)
    if isinstance(error, dict):
        kind, text = error.get("type") or error.get("code"), error.get("message")
        return ": ".join(str(part) for part in (kind, text) if part) or str(error)
    return str(error)
