"""Server-sent events by the standard, however the bytes are cut."""

import pytest

from loadtests import sse
from loadtests.sse import Event, SseError, SseParser


def _parse(*reads: bytes) -> list[tuple[str, str]]:
    parser = SseParser()
    return [(event.name, event.text) for read in reads for event in parser.feed(read)]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends(end: bytes) -> None:
    """LF, CRLF and CR all end a line, and an empty line dispatches."""
    text = end.join([b"data: a", b"", b"data: b", b"", b""])

    assert _parse(text) == [("message", "a"), ("message", "b")]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_cut_gives_the_same_events(end: bytes) -> None:
    """One byte a read gives what one read gives, multi-byte characters and a BOM included."""
    lines = ["\ufeffdata: 中", "data: 🙂é", ": note", "", "event: error", "id: 7", "data:x", "", ""]
    text = end.join(line.encode() for line in lines)

    whole = _parse(text)
    single = _parse(*(text[i : i + 1] for i in range(len(text))))

    assert [("message", "中\n🙂é"), ("error", "x")] == whole == single


def test_fields_by_the_standard() -> None:
    """One leading space goes, unknown fields are ignored, a field without colon has an empty value."""
    assert _parse(b"data:  two\nfoo: bar\n\ndata\ndata\n\n") == [("message", " two"), ("message", "\n")]


def test_comment_only_blocks_and_events_without_data_dispatch_nothing() -> None:
    """A keep-alive is not an event, and neither is an event line without data; its name does not leak."""
    assert _parse(b": ping\n\n:\n\nevent: error\n\ndata: x\n\n") == [("message", "x")]


def test_id_is_kept_and_retry_is_read() -> None:
    """The last id goes on to later events, an id with NUL is ignored, retry takes digits only."""
    parser = SseParser()

    events = parser.feed(b"id: 1\ndata: a\n\nid: \0\nretry: 500\nretry: x\ndata: b\n\n")

    assert [Event(b"a", "message", "1"), Event(b"b", "message", "1")] == events
    assert parser.retry_ms == 500


def test_unfinished_event_is_not_dispatched_but_seen() -> None:
    """The standard discards what is not ended by an empty line; the parser says that something is held."""
    parser = SseParser()

    assert parser.feed(b"data: a\n") == []
    assert parser.pending
    assert [event.text for event in parser.feed(b"\n")] == ["a"]
    assert not parser.pending


def test_whole_events_after_the_first_read_are_all_there() -> None:
    """The short way for reads made of whole events loses and merges nothing."""
    parser = SseParser()
    parser.feed(b"data: 0\n\n")

    texts = [event.text for event in parser.feed(b"data: 1\n\ndata: 2\n\n")]
    texts += [event.text for event in parser.feed(b"data: 3\ndata: 4\n\n")]
    texts += [event.text for event in parser.feed(b"\n\n")]
    texts += [event.text for event in parser.feed(b"data: 5\n\n")]

    assert texts == ["1", "2", "3\n4", "5"]


def test_an_endless_event_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that never ends its event cannot fill the client's memory."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)

    with pytest.raises(SseError, match="larger than 100"):
        SseParser().feed(b"data: " + b"x" * 200)
