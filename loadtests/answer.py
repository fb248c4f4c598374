"""The body of an answer that was not streamed (completion, chat, embeddings, RAG) -> usage, finish reason, failure."""

from dataclasses import dataclass

from loadtests.stream import (
    MAX_MESSAGE_CHARS,
    Failure,
    ShapeError,
    Usage,
    read_error,
    read_finish,
    read_json,
    read_object,
    read_objects,
    read_usage,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a complete JSON body says; `text` is the first choice's content, for scorers."""

    usage: Usage | None = None
    finish_reason: str | None = None
    failure: Failure | None = None
    text: str = ""


def read_answer(body: bytes) -> Answer:
    """A 200 body; one that is not a JSON object, or that holds an error, is a failure."""
    try:
        value = read_json(body)
    except ValueError:
        return Answer(failure=Failure("bad_json", "", body[:MAX_MESSAGE_CHARS].decode("utf-8", "replace")))
    failure = read_error(value)
    if failure is not None:
        return Answer(failure=failure)
    if not isinstance(value, dict):
        return Answer(failure=Failure("bad_json", "", "the answer is not a JSON object"))
    try:
        choice = (read_objects(value.get("choices"), "choices") or [{}])[0]
        message = read_object(choice.get("message"), "message")
    except ShapeError as error:
        return Answer(failure=Failure("bad_json", "", str(error)))
    text = message.get("content") or choice.get("text") or value.get("answer") or ""
    reason, failure = read_finish(choice.get("finish_reason"))
    return Answer(read_usage(value.get("usage")), reason, failure, str(text))


def read_refusal(status: int, body: bytes) -> Failure:
    """A response with a status other than 200: kind `http_<status>`, type and message from the body if it has them."""
    try:
        found = read_error(read_json(body))
    except ValueError:
        found = None
    if found is not None:
        return Failure(f"http_{status}", found.type, found.message)
    return Failure(f"http_{status}", "", body[:MAX_MESSAGE_CHARS].decode("utf-8", "replace"))
