"""OpenAI's request bodies -> checked values, and answers back in vLLM's spelling."""

import json
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from sim.request import Output, Token
from sim.text import tokenize

MOST_CHOICES = 16_384
"""Of one request, vLLM's own limit; without one, a single request stops the engine for everybody."""


class ApiError(Exception):
    """An answer that is an error: HTTP status, message, OpenAI's type, the parameter at fault."""

    def __init__(self, status: int, message: str, kind: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = json.dumps(
            {"error": {"message": message, "type": kind, "param": param, "code": status}}
        ).encode()


def bad_request(message: str, param: str | None = None) -> ApiError:
    """A 400."""
    return ApiError(400, message, "BadRequestError", param)


def busy() -> ApiError:
    """The 503 of a full queue."""
    return ApiError(
        503,
        "The engine is currently busy and cannot accept new requests. "
        "Please try again later or on a different instance.",
        "Service Unavailable",
    )


def internal_error() -> ApiError:
    """The 500 of a failed request."""
    return ApiError(500, "Internal server error", "InternalServerError")


class StreamOptions(BaseModel):
    """`stream_options`."""

    include_usage: bool = False


class _Common(BaseModel):
    model_config = ConfigDict(extra="ignore")
    model: str | None = None
    max_tokens: int | None = None
    n: int = 1
    temperature: float | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    ignore_eos: bool = False
    min_tokens: int = 0


class CompletionBody(_Common):
    """POST /v1/completions: text, token ids, or several of either."""

    prompt: str | list[int] | list[str] | list[list[int]]


class ContentPart(BaseModel):
    """One part of a message's content; only text is read."""

    type: str
    text: str = ""


class ChatMessage(BaseModel):
    """One message of a chat."""

    role: str
    content: str | list[ContentPart] | None = None


class ChatBody(_Common):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage]
    max_completion_tokens: int | None = None


@dataclass(frozen=True)
class Call:
    """A checked request: one entry of `prompts` a prompt, `n` choices of each."""

    kind: Literal["completion", "chat"]
    prompts: list[list[Token]]
    n: int
    max_tokens: int
    stream: bool
    include_usage: bool
    ignore_eos: bool
    model: str
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:16])
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens of all prompts, as `usage` counts them."""
        return sum(len(prompt) for prompt in self.prompts)


def parse(kind: Literal["completion", "chat"], raw: bytes, model: str, max_model_len: int) -> Call:
    """Check a request body against what the served model allows.

    Raises:
        ApiError: 400 for what is wrong in the body, 404 for a model that is not served.
    """
    try:
        body = (CompletionBody if kind == "completion" else ChatBody).model_validate_json(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "body"
        raise ApiError(400, f"{where}: {first['msg']}", "Bad Request", where) from error
    if body.model is not None and body.model != model:
        message = f"The model `{body.model}` does not exist. Served here: {model}."
        raise ApiError(404, message, "NotFoundError", "model")
    prompts = _prompts(body)
    limit = body.max_tokens
    if isinstance(body, ChatBody):
        limit = body.max_completion_tokens if body.max_completion_tokens is not None else limit
        room = max_model_len - len(prompts[0])
    else:
        room = 16  # OpenAI's default for completions
    max_tokens = room if limit is None else limit
    _check(body, prompts, max_tokens, max_model_len)
    usage = body.stream_options is not None and body.stream_options.include_usage
    ignore_eos = body.ignore_eos or body.min_tokens >= max_tokens
    return Call(kind, prompts, body.n, max_tokens, body.stream, usage, ignore_eos, model)


def _prompts(body: CompletionBody | ChatBody) -> list[list[Token]]:
    if isinstance(body, ChatBody):
        tokens: list[Token] = []
        for message in body.messages:
            content = message.content or ""
            text = content if isinstance(content, str) else " ".join(part.text for part in content)
            tokens += [f"<|{message.role}|>", *tokenize(text)]
        return [[*tokens, "<|assistant|>"]]
    prompt = body.prompt
    if isinstance(prompt, str):
        return [tokenize(prompt)]
    prompts: list[list[Token]] = []
    for item in prompt:
        if isinstance(item, int):
            return [[one for one in prompt if isinstance(one, int)]]
        prompts.append(tokenize(item) if isinstance(item, str) else list(item))
    return prompts


def _check(
    body: CompletionBody | ChatBody, prompts: list[list[Token]], max_tokens: int, max_model_len: int
) -> None:
    if not prompts or not all(prompts):
        raise bad_request("The prompt is empty.", "prompt")
    if body.n < 1:
        raise bad_request(f"n must be at least 1, got {body.n}.", "n")
    if body.n > MOST_CHOICES:
        raise bad_request(f"n must be at most {MOST_CHOICES}, got {body.n}.", "n")
    if body.temperature is not None and body.temperature < 0:
        raise bad_request(f"temperature must be non-negative, got {body.temperature}.", "temperature")
    if body.temperature == 0 and body.n > 1:
        raise bad_request(f"n must be 1 when using greedy sampling, got {body.n}.")
    if max_tokens < 1:
        raise bad_request(f"max_tokens must be at least 1, got {max_tokens}.", "max_tokens")
    longest = max(len(prompt) for prompt in prompts)
    if longest + max_tokens > max_model_len:
        raise bad_request(
            f"This model's context is {max_model_len} tokens; the prompt has {longest} and "
            f"max_tokens is {max_tokens}. Shorten one of them.",
            "input_tokens",
        )


def usage(call: Call, completion_tokens: int) -> dict[str, int]:
    """The `usage` object."""
    prompt = call.prompt_tokens
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def whole(call: Call, texts: list[str], reasons: list[str], completion_tokens: int) -> dict[str, Any]:
    """The body of an answer that is not streamed; one text and finish reason a choice."""
    chat = call.kind == "chat"
    choices: list[dict[str, Any]] = []
    for index, (text, reason) in enumerate(zip(texts, reasons, strict=True)):
        content = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
        choices.append(
            {"index": index, **content, "logprobs": None, "finish_reason": reason, "stop_reason": None}
        )
    return {
        "id": f"chatcmpl-{call.id}" if chat else f"cmpl-{call.id}",
        "object": "chat.completion" if chat else "text_completion",
        "created": call.created,
        "model": call.model,
        "choices": choices,
        "usage": usage(call, completion_tokens),
    }


class StreamWriter:
    """Outputs -> server-sent events of one streamed answer."""

    def __init__(self, call: Call) -> None:
        chat = call.kind == "chat"
        self._call = call
        self._chat = chat
        self._head = json.dumps(
            {
                "id": f"chatcmpl-{call.id}" if chat else f"cmpl-{call.id}",
                "object": "chat.completion.chunk" if chat else "text_completion",
                "created": call.created,
                "model": call.model,
            }
        )[:-1]
        self._begun: set[int] = set()

    def events(self, outputs: list[Output]) -> bytes:
        """One event an output; a chat choice begins with an event that gives its role."""
        parts: list[str] = []
        for output in outputs:
            if self._chat and output.index not in self._begun:
                self._begun.add(output.index)
                parts.append(self._event(output.index, '{"role":"assistant","content":""}', "null"))
            text = json.dumps("" if output.token is None else str(output.token))
            content = f'{{"content":{text}}}' if self._chat else text
            reason = "null" if output.finish_reason is None else f'"{output.finish_reason.value}"'
            parts.append(self._event(output.index, content, reason))
        return "".join(parts).encode()

    def usage_event(self, completion_tokens: int) -> bytes:
        """The last event before the end, with `usage` and no choice."""
        counts = json.dumps(usage(self._call, completion_tokens))
        return f'data: {self._head},"choices":[],"usage":{counts}}}\n\n'.encode()

    def _event(self, index: int, content: str, reason: str) -> str:
        key = "delta" if self._chat else "text"
        return (
            f'data: {self._head},"choices":[{{"index":{index},"{key}":{content},'
            f'"logprobs":null,"finish_reason":{reason}}}]}}\n\n'
        )


DONE = b"data: [DONE]\n\n"


def error_event(error: ApiError) -> bytes:
    """An error inside a stream that began as a 200."""
    return b"data: " + error.body + b"\n\n"
