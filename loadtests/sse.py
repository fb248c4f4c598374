"""Bytes as they come off the wire -> server-sent events, by the WHATWG event-stream standard."""

import re
from typing import NamedTuple

MAX_EVENT_BYTES = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class SseError(ValueError):
    """The stream cannot be an event stream we accept (an event larger than `MAX_EVENT_BYTES`)."""


class Event(NamedTuple):
    """One dispatched event: `data` is the raw UTF-8 payload, `name` is "message" unless the server named it."""

    data: bytes
    name: str = "message"
    last_id: str = ""

    @property
    def text(self) -> str:
        """The payload decoded as the standard says: UTF-8, bad sequences become U+FFFD."""
        return self.data.decode("utf-8", "replace")


class SseParser:
    """Incremental parser: `feed` takes any cut of the stream and returns the events completed by it.

    Lines are split on bytes, before decoding, so a cut inside a UTF-8 sequence does no harm.
    `pending` is true while an event has begun and not been dispatched; at the end of the stream
    the standard discards such an event, so a caller reads `pending` to know that something was lost.
    """

    __slots__ = (
        "_between",
        "_buffer",
        "_data",
        "_last_id",
        "_name",
        "_scanned",
        "_skip_lf",
        "_started",
        "retry_ms",
    )

    def __init__(self) -> None:
        self._between = False
        self._buffer = bytearray()
        self._scanned = 0
        self._data: list[bytes] = []
        self._name = ""
        self._last_id = ""
        self._skip_lf = False
        self._started = False
        self.retry_ms: int | None = None

    @property
    def pending(self) -> bool:
        """True when an unfinished line or event is held."""
        return bool(self._buffer or self._data or self._name)

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that *chunk* completes, in order; raises `SseError` on an oversized event."""
        if not self._started and not self._buffer and chunk.startswith(b"data: "):
            self._started = self._between = True  # no byte-order mark in front
        if self._between and chunk[-2:] == b"\n\n" and b"\r" not in chunk:
            events = _whole_events(chunk, self._last_id)
            if events:
                return events
        events = self._feed_lines(chunk)
        self._between = self._started and not self._skip_lf and not self.pending
        return events

    def _feed_lines(self, chunk: bytes) -> list[Event]:
        buffer = self._buffer
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        buffer += chunk
        if not self._started and not self._strip_bom():
            return []
        events: list[Event] = []
        start = 0
        for end in _LINE_END.finditer(buffer, self._scanned):
            self._line(bytes(buffer[start : end.start()]), events)
            start = end.end()
        if start and buffer[start - 1] == 0x0D and start == len(buffer):
            self._skip_lf = True
        del buffer[:start]
        self._scanned = len(buffer)
        if len(buffer) + sum(map(len, self._data)) > MAX_EVENT_BYTES:
            raise SseError(f"an event is larger than {MAX_EVENT_BYTES} bytes")
        return events

    def _strip_bom(self) -> bool:
        """Drop a leading byte-order mark; False while too few bytes are here to tell."""
        buffer = self._buffer
        if len(buffer) < len(_BOM) and _BOM.startswith(bytes(buffer)):
            return False
        if buffer.startswith(_BOM):
            del buffer[: len(_BOM)]
        self._started = True
        return True

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            self._dispatch(events)
            return
        field, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"id" and b"\0" not in value:
            self._last_id = value.decode("utf-8", "replace")
        elif field == b"retry" and value.isdigit():
            self.retry_ms = int(value)

    def _dispatch(self, events: list[Event]) -> None:
        if self._data:
            events.append(Event(b"\n".join(self._data), self._name or "message", self._last_id))
            self._data = []
        self._name = ""


def _whole_events(chunk: bytes, last_id: str) -> list[Event]:
    """The usual read, complete one-line `data: …` events and nothing else; [] when it is not that."""
    if chunk.find(b"\n") == len(chunk) - 2:
        return [Event(chunk[6:-2], "message", last_id)] if chunk.startswith(b"data: ") else []
    events = []
    for block in chunk[:-2].split(b"\n\n"):
        if not block.startswith(b"data: ") or b"\n" in block:
            return []
        events.append(Event(block[6:], "message", last_id))
    return events
