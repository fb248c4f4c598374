"""What code inside a span says of it: tokens, cache, pool, failure; free of cost where the span is not recorded."""

from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.context import Context, create_key, get_value, set_value
from opentelemetry.trace import Span, Status, StatusCode

from inferwatch.tracing import attributes as names
from inferwatch.tracing.timing import TokenClock

Value = str | bool | int | float | Sequence[str]
_KEY = create_key("inferwatch.tracing.handle")


class Handle:
    """A span of ours. None as a value sets nothing: unknown is absent, never 0."""

    __slots__ = ("_clock", "_output_tokens", "recording", "span")

    def __init__(self, span: Span, recording: bool | None = None) -> None:
        self.span = span
        self.recording = span.is_recording() if recording is None else recording
        self._clock: TokenClock | None = None
        self._output_tokens: int | None = None

    @property
    def trace_id(self) -> str | None:
        """32 hexadecimal digits; None outside any trace."""
        context = self.span.get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else None

    def set(self, name: str, value: Value | None) -> None:
        """Set one attribute."""
        if self.recording and value is not None:
            self.span.set_attribute(name, value)

    def usage(
        self, input_tokens: int | None, output_tokens: int | None, cached_tokens: int | None = None
    ) -> None:
        """Tokens as the engine counted them; *cached_tokens* are part of *input_tokens*."""
        self._output_tokens = output_tokens
        self.set(names.INPUT_TOKENS, input_tokens)
        self.set(names.OUTPUT_TOKENS, output_tokens)
        self.set(names.CACHED_TOKENS, cached_tokens)

    def pool_wait(self, seconds: float) -> None:
        """How long a connection or slot was waited for."""
        self.set(names.POOL_WAIT_SECONDS, seconds)

    def cache(self, level: str) -> None:
        """Where the answer to a lookup came from: l1, l2, negative or miss."""
        self.set(names.CACHE_LEVEL, level)

    def context(self, tokens_before: int, tokens_after: int) -> None:
        """Context tokens before and after truncation."""
        if self.recording:
            self.span.set_attributes(
                {
                    names.TOKENS_BEFORE: tokens_before,
                    names.TOKENS_AFTER: tokens_after,
                    names.TRUNCATED: tokens_after < tokens_before,
                }
            )

    def tokens(self) -> TokenClock:
        """The clock of this span's stream: call `tick` for each chunk; the numbers are set when the span ends."""
        if self._clock is None:
            self._clock = TokenClock()
        return self._clock

    def clock(self, clock: TokenClock) -> None:
        """Use a clock that runs already."""
        self._clock = clock

    def http_status(self, status: int) -> None:
        """The answer's status; from 500 on the request failed."""
        self.set(names.STATUS_CODE, status)
        if status >= 500:
            self.failed(str(status))

    def failed(self, error_type: str) -> None:
        """The span is an error of this bounded type; no message, which could hold a prompt."""
        if self.recording:
            self.span.set_attribute(names.ERROR_TYPE, error_type)
            self.span.set_status(Status(StatusCode.ERROR))

    def abandoned(self) -> None:
        """The caller went away; neither an error nor a success."""
        self.set(names.ABANDONED, True)

    def finish_timing(self) -> None:
        """Put what the clock measured on the span."""
        clock = self._clock
        if clock is None or not self.recording:
            return
        self.set(names.FIRST_CHUNK_SECONDS, clock.first_seconds)
        self.set(names.CHUNKS, clock.chunks)
        self.set(names.CHUNK_GAP_MAX_SECONDS, clock.longest_gap_seconds)
        self.set(names.SECONDS_PER_OUTPUT_TOKEN, clock.seconds_per_token(self._output_tokens))


def inside(handle: Handle) -> Context:
    """The context in which *handle* is what `current` gives."""
    return set_value(_KEY, handle, trace.set_span_in_context(handle.span))


def current() -> Handle:
    """The innermost span, for code that a decorator wrapped; a span that others made has no clock yet."""
    span, handle = trace.get_current_span(), get_value(_KEY)
    return handle if isinstance(handle, Handle) and handle.span is span else Handle(span)
