"""One sequence on its way through the engine, and the box its tokens are put in."""

import asyncio
from dataclasses import dataclass, field
from enum import StrEnum

Token = str | int


class FinishReason(StrEnum):
    """Why a request ended; the closed label set of `vllm:request_success_total`."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"
    REPETITION = "repetition"


@dataclass(frozen=True, slots=True)
class Output:
    """What one step gave one choice: a token, or the end, or both (at most one is None)."""

    index: int
    token: Token | None
    finish_reason: FinishReason | None


class Outbox:
    """Outputs of all choices of one HTTP request; a slow reader finds several at once."""

    def __init__(self, *, streaming: bool) -> None:
        self.streaming = streaming
        self._outputs: list[Output] = []
        self._waiter: asyncio.Future[None] | None = None

    def put(self, output: Output) -> None:
        """Add one output and wake the reader; without streaming only ends are kept."""
        if not self.streaming and output.finish_reason is None:
            return
        self._outputs.append(output)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def take(self) -> list[Output]:
        """Wait for at least one output and return all there are, oldest first."""
        while not self._outputs:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        outputs, self._outputs = self._outputs, []
        return outputs


@dataclass(slots=True)
class Group:
    """The sequences (n > 1, several prompts) that one HTTP request became."""

    n: int
    outbox: Outbox
    unfinished: int = 0
    longest_output_tokens: int = 0


@dataclass(eq=False, slots=True)
class Request:
    """One sequence. Times are seconds of the event loop's monotonic clock, None until known."""

    tokens: list[Token]
    max_tokens: int
    # How many tokens until the model stops by itself, and until it fails; 0 means never.
    stop_after_tokens: int = 0
    fail_after_tokens: int = 0
    index: int = 0
    group: Group | None = None
    hash_seed: int = 0
    prompt_length: int = field(init=False)
    arrived_at: float | None = None
    queued_at: float | None = None
    scheduled_at: float | None = None
    first_token_at: float | None = None
    last_token_at: float | None = None
    num_computed: int = 0
    num_cached: int = 0
    num_preemptions: int = 0
    blocks: list[int] = field(default_factory=list)
    block_hashes: list[int] = field(default_factory=list)
    num_published_blocks: int = 0
    finish_reason: FinishReason | None = None
    aborted: bool = False

    def __post_init__(self) -> None:
        self.prompt_length = len(self.tokens)

    @property
    def num_generated(self) -> int:
        """Tokens made so far."""
        return len(self.tokens) - self.prompt_length

    def end(self) -> FinishReason | None:
        """Say whether the tokens made so far end this request, and why."""
        made = self.num_generated
        if self.fail_after_tokens and made >= self.fail_after_tokens:
            return FinishReason.ERROR
        if self.stop_after_tokens and made >= self.stop_after_tokens:
            return FinishReason.STOP
        if made >= self.max_tokens:
            return FinishReason.LENGTH
        return None
