"""Recorded streams of real failure kinds: what they meant and when, against answers worked out by hand."""

import base64
import json
from pathlib import Path

import pytest

from loadtests.stream import StreamMeter


def _play(path: Path, *, keep_text: bool = False) -> StreamMeter:
    """Feed a transcript's exact bytes at their times; time zero is the send."""
    meter = StreamMeter(keep_text=keep_text)
    for line in path.read_text(encoding="utf-8").splitlines():
        read = json.loads(line)
        meter.feed(base64.b64decode(read["b64"]), read["t_ms"] * 1_000_000)
    meter.finish()
    return meter


def _tpot_ms(meter: StreamMeter) -> float:
    stamps, (tokens, source) = meter.token_stamps_ns, meter.output_tokens
    assert source == "server"
    assert tokens is not None
    return (stamps[-1] - stamps[0]) / 1e6 / (tokens - 1)


@pytest.mark.parametrize("keep_text", [False, True])
def test_usage_chunk_without_choices(streams: Path, keep_text: bool) -> None:
    """A54: a last chunk with empty choices gives the counts and breaks nothing."""
    meter = _play(streams / "A54/stream.jsonl", keep_text=keep_text)

    assert meter.failure is None
    assert [meter.token_stamps_ns[0] / 1e6, meter.token_stamps_ns[-1] / 1e6] == [200, 280]
    assert meter.output_tokens == (3, "server")
    assert meter.usage is not None
    assert meter.usage.prompt_tokens == 9
    assert _tpot_ms(meter) == 40.0
    assert meter.finish_reason == "stop"
    assert meter.text == ("Hello there!" if keep_text else "")


def test_role_only_chunk_is_not_the_first_token(streams: Path) -> None:
    """A55: role frames, empty strings and comments are not tokens."""
    meter = _play(streams / "A55/stream.jsonl")

    assert meter.token_stamps_ns[0] / 1e6 == 900
    assert _tpot_ms(meter) == 50.0


def test_characters_and_lines_split_across_reads(streams: Path) -> None:
    """A56: the text survives any cut, and a token counts when its event is complete."""
    meter = _play(streams / "A56/stream.jsonl", keep_text=True)

    assert meter.text == "中文🙂é"
    assert meter.token_stamps_ns[0] / 1e6 == 150
    assert meter.output_tokens == (3, "server")
    assert len(meter.token_stamps_ns) == 2


def test_keepalive_comments(streams: Path) -> None:
    """A57: comments while the model thinks are ignored; one token has no gap."""
    meter = _play(streams / "A57/stream.jsonl")

    assert meter.failure is None
    assert [stamp / 1e6 for stamp in meter.token_stamps_ns] == [3600]
    assert meter.output_tokens == (1, "server")
    assert meter.chunk_gaps_ns == ()


@pytest.mark.parametrize(
    ("name", "kind", "partial"),
    [
        ("partial_then_error", "stream_error:InternalServerError", 2),
        ("error_before_token", "stream_error:InternalServerError", 0),
        ("tgi_style_error", "stream_error:generation", 0),
        ("event_error", "stream_error:generation", 0),
    ],
)
def test_error_inside_a_200_stream(streams: Path, name: str, kind: str, partial: int) -> None:
    """A58: every spelling of an in-stream error is a failure, grouped by type, with the server's message."""
    meter = _play(streams / f"A58/{name}.jsonl")

    assert meter.failure is not None
    assert kind == meter.failure.name
    assert meter.failure.message.startswith(("engine stopped", "Request failed during generation"))
    assert partial == len(meter.token_stamps_ns)


def test_several_tokens_per_chunk(streams: Path) -> None:
    """A59: tokens come from usage, gaps are between chunks, the first token is not a gap."""
    meter = _play(streams / "A59/stream.jsonl")

    assert meter.output_tokens == (9, "server")
    assert _tpot_ms(meter) == 22.5
    assert meter.chunk_gaps_ns == (90_000_000, 90_000_000)
    assert meter.token_stamps_ns[0] / 1e6 == 200


@pytest.mark.parametrize(
    ("name", "first", "content", "tokens"),
    [("reasoning", 500, 1600, 52), ("reasoning_only_length", 500, None, 5), ("tool_call_only", 420, None, 8)],
)
def test_reasoning_and_tool_calls(
    streams: Path, name: str, first: int, content: int | None, tokens: int
) -> None:
    """A74: the first token of any channel counts, and content has its own first time or none."""
    meter = _play(streams / f"A74/{name}.jsonl")

    assert meter.failure is None
    assert first == meter.token_stamps_ns[0] / 1e6
    assert content == (None if meter.first_content_ns is None else meter.first_content_ns / 1e6)
    assert (tokens, "server") == meter.output_tokens


def test_single_space_tokens(streams: Path) -> None:
    """A75: fifteen spaces are fifteen tokens because the server says so."""
    meter = _play(streams / "A75/stream.jsonl")

    assert meter.output_tokens == (15, "server")
    assert _tpot_ms(meter) == 10.0


def test_without_usage_the_count_is_marked_estimated() -> None:
    """One a chunk is all that can be said without the server's count, and it is said to be that."""
    meter = StreamMeter()
    meter.feed(b'data: {"choices": [{"index": 0, "text": "a", "finish_reason": null}]}\n\n', 1)
    meter.feed(b'data: {"choices": [{"index": 0, "text": "b", "finish_reason": "stop"}]}\n\n', 2)
    meter.finish()

    assert meter.output_tokens == (2, "estimated")


def test_missing_done_is_fine_after_a_finish_reason_and_truncated_without() -> None:
    """[DONE] is a courtesy; a stream that just ends is a failure."""
    ended, cut, torn = StreamMeter(), StreamMeter(), StreamMeter()
    ended.feed(b'data: {"choices": [{"index": 0, "text": "a", "finish_reason": "stop"}]}\n\n', 1)
    cut.feed(b'data: {"choices": [{"index": 0, "text": "a", "finish_reason": null}]}\n\n', 1)
    torn.feed(b'data: {"choices": [{"ind', 1)
    for meter in (ended, cut, torn):
        meter.finish()

    assert (ended.failure, ended.done_seen) == (None, False)
    assert cut.failure is not None and cut.failure.kind == "truncated"
    assert torn.failure is not None and "unfinished event" in torn.failure.message


def test_data_that_is_not_json_fails() -> None:
    """Garbage in a data line is never passed over."""
    for payload in (b"data: oops\n\n", b"data: 5\n\n"):
        meter = StreamMeter()
        meter.feed(payload, 1)
        assert meter.failure is not None
        assert meter.failure.kind == "bad_json"


def test_server_side_abort_is_a_failure() -> None:
    """finish_reason abort means that the server gave up on the answer."""
    meter = StreamMeter()
    meter.feed(b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "abort"}]}\n\n', 1)

    assert meter.failure is not None
    assert meter.failure.name == "stream_error:finish_abort"


@pytest.mark.parametrize(
    ("later", "tokens"),
    [
        (b'{"id":"x","choices":[{"index":0,"delta":{"content":" b"},"finish_reason":null}]}', 2),
        (b'{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}', 1),
        (b'{"id":"x","choices":[{"index":0,"delta":{"content":"\\" \\\\"},"finish_reason":null}]}', 2),
        (b'{"id":"x","choices":[{"index":0,"delta":{"content":null,"x":"y"},"finish_reason":null}]}', 1),
        (b'{"id":"x","choices":[{"index":0,"delta":{"content":"","x":"y"},"finish_reason":null}]}', 1),
        ('{"id":"x","choices":[{"index":0,"delta":{"content":"é"},"finish_reason":null}]}'.encode(), 2),
    ],
)
def test_the_short_way_sees_what_json_sees(later: bytes, tokens: int) -> None:
    """Events told apart by their surroundings alone mean what a full parse says they mean."""
    first = b'{"id":"x","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}'
    for keep_text in (False, True):
        meter = StreamMeter(keep_text=keep_text)
        for payload in (first, later):
            meter.feed(b"data: " + payload + b"\n\n", 1)
        assert tokens == len(meter.token_stamps_ns)


def test_the_short_way_does_not_swallow_an_error_or_a_finish() -> None:
    """Error, usage and finish reason are read although plain tokens came before."""
    meter = StreamMeter()
    plain = '{"choices":[{"index":0,"text":"%s","finish_reason":%s}]%s}'
    for payload in (plain % ("a", "null", ""), plain % ("b", '"length"', ',"usage":{"completion_tokens":4}')):
        meter.feed(f"data: {payload}\n\n".encode(), 1)
    meter.feed(b'data: {"error":{"type":"Boom","message":"m"}}\n\n', 2)

    assert meter.finish_reason == "length"
    assert meter.output_tokens == (4, "server")
    assert meter.failure is not None and meter.failure.name == "stream_error:Boom"


def _feed(*payloads: str, keep_text: bool = False) -> StreamMeter:
    meter = StreamMeter(keep_text=keep_text)
    for number, payload in enumerate(payloads):
        meter.feed(f"data: {payload}\n\n".encode(), number)
    return meter


@pytest.mark.parametrize(
    "payload",
    [
        '{"choices":[null]}',
        '{"choices":["x"]}',
        '{"choices":5}',
        '{"choices":{"index":0}}',
        '{"choices":[{"delta":{"tool_calls":[null]}}]}',
        '{"choices":[{"delta":{"tool_calls":7}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"function":"f"}]}}]}',
        '{"choices":[{"delta":{"function_call":"f"}}]}',
        "[" * 100_000,
    ],
)
def test_json_of_another_shape_fails_the_request_and_not_the_client(payload: str) -> None:
    """What a server sends is its own failure, named; none of it may end the whole run as if our code had a bug."""
    meter = _feed(payload)

    assert meter.failure is not None
    assert meter.failure.kind == "bad_json"
    assert meter.token_stamps_ns == []


@pytest.mark.parametrize("count", ["true", "-3", "100000000000000000000", '"7"', "null"])
def test_a_count_that_can_be_none_is_unknown(count: str) -> None:
    """A boolean, a negative number, one over 2^63-1 and a string are no token counts; the other count stays."""
    usage = _feed(f'{{"choices":[],"usage":{{"completion_tokens":{count},"prompt_tokens":4}}}}').usage

    assert usage is not None
    assert (usage.output_tokens, usage.prompt_tokens) == (None, 4)


def test_kept_text_is_the_answer_without_the_reasoning() -> None:
    """A scorer compares the answer: `hm` was thought and `f` called, `42` was said; all three are token chunks."""
    meter = _feed(
        '{"choices":[{"delta":{"reasoning_content":"hm"}}]}',
        '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f"}}]}}]}',
        '{"choices":[{"delta":{"content":"42"}}]}',
        keep_text=True,
    )

    assert meter.text == "42"
    assert len(meter.token_stamps_ns) == 3


def test_nothing_counts_after_done() -> None:
    """Two tokens before [DONE]; the third, of the shape that is read in one step, came after the end."""
    token = '{"choices":[{"delta":{"content":"a"},"finish_reason":null}]}'

    assert len(_feed(token, token, "[DONE]", token).token_stamps_ns) == 2


@pytest.mark.parametrize("keep_text", [False, True])
def test_half_a_character_a_chunk_is_two_tokens(keep_text: bool) -> None:
    """An emoji whose two surrogates come in a chunk each: two token chunks, and kept text is the emoji."""
    halves = (f'{{"choices":[{{"delta":{{"content":"{half}"}}}}]}}' for half in ("\\ud83d", "\\ude00"))
    meter = _feed(*halves, "[DONE]", keep_text=keep_text)
    meter.finish()

    assert (meter.failure, meter.token_stamps_ns) == (None, [0, 1])
    assert meter.text.encode("utf-16", "surrogatepass").decode("utf-16") == (
        "\U0001f600" if keep_text else ""
    )
