"""Bodies that came whole: good ones, errors in a 200, refusals in every spelling."""

import pytest

from loadtests.answer import read_answer, read_refusal


def test_good_answer() -> None:
    """Text, finish reason and the server's counts."""
    body = (
        b'{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":3}}'
    )
    answer = read_answer(body)

    assert (answer.text, answer.finish_reason, answer.failure) == ("hi", "stop", None)
    assert answer.usage is not None
    assert (answer.usage.output_tokens, answer.usage.prompt_tokens) == (3, None)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"error": {"type": "Oops", "message": "m"}}', "stream_error:Oops"),
        (b'{"object": "error", "type": "Bad", "message": "m"}', "stream_error:Bad"),
        (b"<html>", "bad_json"),
        (b"[]", "bad_json"),
    ],
)
def test_a_200_that_is_none(body: bytes, name: str) -> None:
    """An error object, or a body that is no JSON object, is a failure whatever the status said."""
    failure = read_answer(body).failure

    assert failure is not None
    assert failure.name == name


@pytest.mark.parametrize(
    ("body", "name", "message"),
    [
        (b'{"error": {"type": "Busy", "message": "later"}}', "http_429:Busy", "later"),
        (b'{"detail": "x"}', "http_429", '{"detail": "x"}'),
        (b"too many", "http_429", "too many"),
        (b"\xff", "http_429", "\ufffd"),
    ],
)
def test_refusals_are_named_by_status_and_type(body: bytes, name: str, message: str) -> None:
    """The status makes the kind, the body gives type and message if it can."""
    failure = read_refusal(429, body)

    assert (failure.name, failure.message) == (name, message)


@pytest.mark.parametrize(
    "body",
    [
        b'{"choices":[null]}',
        b'{"choices":5}',
        b'{"choices":{"a":1}}',
        b'{"choices":[{"message":"x"}]}',
        b"[" * 100_000,
    ],
)
def test_another_shape_is_a_failure_of_the_answer(body: bytes) -> None:
    """JSON that is no answer is named so, as in a stream, and raises nothing; a refusal keeps its status."""
    answer = read_answer(body).failure

    assert answer is not None
    assert answer.kind == "bad_json"
    assert read_refusal(500, body).kind == "http_500"


@pytest.mark.parametrize("reason", ["abort", "error"])
def test_an_answer_that_the_server_gave_up_is_a_failure(reason: str) -> None:
    """The same finish reasons that fail a stream fail an answer that came whole."""
    answer = read_answer(b'{"choices":[{"text":"x","finish_reason":"%s"}]}' % reason.encode())

    assert answer.failure is not None
    assert (answer.failure.name, answer.finish_reason) == (f"stream_error:finish_{reason}", reason)
