"""The state of one exchange while it goes on -> its `RequestRecord`."""

from typing import Any

from loadtests.answer import Answer
from loadtests.http1 import HttpError
from loadtests.records import Outcome, RequestRecord
from loadtests.stream import Failure, StreamMeter, Usage
from loadtests.workload import Prepared

MAX_BODY_BYTES = 64 * 1024 * 1024


class Exchange:
    """Stamps (monotonic ns) and findings of one attempt; the client fills it, `record` closes it."""

    def __init__(
        self,
        request: Prepared,
        attempt: int,
        scheduled_ns: int,
        started_ns: int,
        wall_offset_ns: int,
        *,
        keep_text: bool,
    ) -> None:
        self.request = request
        self.attempt = attempt
        self.meter = StreamMeter(keep_text=keep_text)
        self.answer = Answer()
        self.body = bytearray()
        self.status: int | None = None
        self.streams = False
        self.aborted = False
        self.unfinished = False
        self._keep_text = keep_text
        self._scheduled_ns = scheduled_ns
        self._started_ns = started_ns
        self._connected_ns: int | None = None
        self._sent_ns: int | None = None
        self._first_byte_ns: int | None = None
        self._last_read_ns: int | None = None
        self.wall_offset_ns = wall_offset_ns
        self._reads = 0
        self._kernel_reads = 0
        self._bytes_in = 0
        self._failure: Failure | None = None

    def connected(self, now_ns: int) -> None:
        """A connection was opened for this request."""
        self._connected_ns = now_ns

    def sent(self, now_ns: int) -> None:
        """The first byte of the request is about to go out."""
        self._sent_ns = now_ns

    def received(self, size: int, stamp_ns: int, by_kernel: bool) -> None:
        """A read of *size* bytes arrived."""
        if self._first_byte_ns is None:
            self._first_byte_ns = stamp_ns
        self._last_read_ns = stamp_ns
        self._reads += 1
        self._kernel_reads += by_kernel
        self._bytes_in += size

    def take(self, body: bytes) -> None:
        """Keep a piece of a body that is not a stream; raises `HttpError` when it grows too large."""
        self.body += body
        if len(self.body) > MAX_BODY_BYTES:
            raise HttpError(f"the answer is larger than {MAX_BODY_BYTES} bytes")

    def fail(self, failure: Failure) -> None:
        """Note a failure; the first one is the cause."""
        if self._failure is None:
            self._failure = failure

    def record(self, worker: int, ended_ns: int) -> RequestRecord:
        """Everything that is known, as a record; *ended_ns* is used when no complete answer set the end."""
        failure = self._failure or self.meter.failure or self.answer.failure
        outcome = self._outcome(failure)
        end_ns = self._last_read_ns if outcome == "ok" and self._last_read_ns is not None else ended_ns
        request = self.request
        return RequestRecord(
            worker=worker,
            seq=request.seq,
            attempt=self.attempt,
            endpoint=request.endpoint,
            stream=request.stream,
            tenant=request.tenant,
            lane=request.lane,
            trace_id=request.trace_id,
            **self._stamps(),
            end_s=end_ns / 1e9,
            wall_offset_s=self.wall_offset_ns / 1e9,
            clock=self._clock(),
            outcome=outcome,
            status=self.status,
            finish_reason=_text(self.meter.finish_reason or self.answer.finish_reason),
            done_seen=self.meter.done_seen,
            error_kind=failure.kind if failure else None,
            error_type=_text(failure.type or None) if failure else None,
            error_message=_text(failure.message or None) if failure else None,
            will_retry=False,
            **self._counts(),
            asked_prompt_tokens=request.asked_prompt_tokens,
            asked_output_tokens=request.asked_output_tokens,
            chunks=len(self.meter.token_stamps_ns),
            bytes_in=self._bytes_in,
            chunk_gaps_ns=self.meter.chunk_gaps_ns,
            text=_text(self.meter.text or self.answer.text) if self._keep_text else None,
        )

    def _stamps(self) -> dict[str, Any]:
        tokens = self.meter.token_stamps_ns
        return {
            "scheduled_s": self._scheduled_ns / 1e9,
            "started_s": self._started_ns / 1e9,
            "connected_s": _seconds(self._connected_ns),
            "sent_s": _seconds(self._sent_ns),
            "first_byte_s": _seconds(self._first_byte_ns),
            "first_token_s": _seconds(tokens[0] if tokens else None),
            "first_content_s": _seconds(self.meter.first_content_ns),
            "last_token_s": _seconds(tokens[-1] if tokens else None),
        }

    def _counts(self) -> dict[str, Any]:
        usage = self.meter.usage or self.answer.usage or Usage()
        tokens, source = self.meter.output_tokens
        if not self.streams and usage.output_tokens is not None:
            tokens, source = usage.output_tokens, "server"
        return {
            "prompt_tokens": usage.prompt_tokens,
            "output_tokens": tokens,
            "cached_tokens": usage.cached_tokens,
            "tokens_source": source,
        }

    def _outcome(self, failure: Failure | None) -> Outcome:
        if failure is not None:
            return "error"
        if self.aborted:
            return "aborted"
        return "unfinished" if self.unfinished else "ok"

    def _clock(self) -> str:
        if self._kernel_reads == 0:
            return "monotonic"
        return "kernel" if self._kernel_reads == self._reads else "mixed"


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _text(text: str | None) -> str | None:
    """Text that files can hold: JSON may bring halves of a surrogate pair, even one half in each of two chunks."""
    if text is None or text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
