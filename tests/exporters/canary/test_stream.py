"""Streams, most of them recorded or from real reports, against what a client may conclude from them."""

import base64
import json
from pathlib import Path

import pytest

from exporters.canary.stream import Malformed, TokenStream

STREAMS = Path(__file__).parents[2] / "fixtures" / "streams"


def replay(path: Path) -> TokenStream:
    """Feed a recorded transcript at its own times (seconds since it was sent)."""
    stream, now = TokenStream(), 0.0
    for line in path.read_text().splitlines():
        read = json.loads(line)
        now = read["t_ms"] / 1000
        stream.feed(base64.b64decode(read["b64"]), now)
    stream.close(now)
    return stream


def fed(text: str) -> TokenStream:
    """Feed a whole body at second 1."""
    stream = TokenStream()
    stream.feed(text.encode(), 1.0)
    stream.close(2.0)
    return stream


@pytest.mark.parametrize(
    ("transcript", "first_token_at", "tokens"),
    [
        ("A54/stream.jsonl", 0.2, 3),  # usage arrives in a chunk without choices
        ("A55/stream.jsonl", 0.9, None),  # the role frame at 60 ms is no token
        ("A56/stream.jsonl", 0.15, 3),  # reads cut inside characters and lines
        ("A57/stream.jsonl", 3.6, 1),  # keep-alive comments
        ("A74/reasoning.jsonl", 0.5, 52),
        ("A74/reasoning_only_length.jsonl", 0.5, 5),
        ("A74/tool_call_only.jsonl", 0.42, 8),
    ],
)
def test_a_whole_stream_is_a_success(transcript: str, first_token_at: float, tokens: int | None) -> None:
    """The first token is clocked on text of any channel, never on a role, comment or first byte."""
    stream = replay(STREAMS / transcript)
    assert stream.first_token_at == pytest.approx(first_token_at)
    assert (stream.error, stream.held_token, stream.finished) == (None, True, True)
    if tokens is not None:
        assert stream.tokens == tokens


@pytest.mark.parametrize(
    ("transcript", "says"),
    [
        ("partial_then_error", "engine stopped"),
        ("error_before_token", "engine stopped"),
        ("tgi_style_error", "Request failed during generation"),
        ("event_error", "Request failed during generation"),
    ],
)
def test_an_error_event_is_kept_with_its_message(transcript: str, says: str) -> None:
    """A failure after the 200 is an error whatever came before it, and [DONE] does not wash it away."""
    error = replay(STREAMS / "A58" / f"{transcript}.jsonl").error
    assert error is not None
    assert says in error


def test_an_admission_rejection_inside_a_200_is_an_error() -> None:
    """vLLM 0.32 turns a burst's requests away inside the stream, as recorded."""
    stream = fed(
        'data: {"error": {"message": "The engine is currently busy.", "type": "Service Unavailable", '
        '"param": null, "code": 503}}\n\ndata: [DONE]\n\n'
    )
    assert stream.error == "Service Unavailable: The engine is currently busy."
    assert not stream.held_token


def test_a_token_without_text_counts_by_the_servers_usage() -> None:
    """An end mark or half a character decodes to nothing; the usage says that a token was made."""
    stream = fed(
        'data: {"choices":[{"index":0,"text":"","finish_reason":"length"}]}\n\n'
        'data: {"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":1}}\n\ndata: [DONE]\n\n'
    )
    assert stream.held_token
    assert stream.first_token_at == 1.0


def test_a_role_and_an_end_hold_no_token() -> None:
    """A role frame, [DONE] and a usage of 0 are an answer with nothing in it."""
    stream = fed(
        'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
        'data: {"choices":[],"usage":{"completion_tokens":0}}\n\ndata: [DONE]\n\n'
    )
    assert (stream.held_token, stream.finished, stream.first_token_at) == (False, True, None)


def test_a_last_event_without_an_empty_line_counts() -> None:
    """The body may end right after the last line, with carriage returns and no space after the colon."""
    stream = fed('data:{"choices":[{"text":" a","finish_reason":"length"}]}\r\n\r\ndata:[DONE]')
    assert (stream.held_token, stream.finished) == (True, True)


@pytest.mark.parametrize(
    "body", ["data: <html>\n\n", "data: 7\n\n", 'data: {"choices": 3}\n\n', 'data: {"choices": [3]}\n\n']
)
def test_what_is_no_completion_chunk_is_malformed(body: str) -> None:
    """Something else than a completion stream behind a 200 is not taken for one."""
    with pytest.raises(Malformed, match=r"an event|a choice"):
        fed(body)
