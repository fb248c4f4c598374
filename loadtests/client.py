"""A prepared request -> one exchange on the wire -> one `RequestRecord`, whatever happened. Runs on gevent."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

import gevent

from loadtests.answer import read_answer, read_refusal
from loadtests.exchange import Exchange
from loadtests.http1 import HttpError, ResponseDecoder
from loadtests.plan import LoadPlan
from loadtests.records import RequestRecord
from loadtests.stream import Failure
from loadtests.target import Target, TransportError
from loadtests.transport import Connection, ConnectionPool, now_ns, wall_offset_ns
from loadtests.workload import Prepared


class Client:
    """Sends requests of one plan to its server; one instance a worker, shared by its greenlets."""

    def __init__(self, plan: LoadPlan, worker: int = 0) -> None:
        self._plan = plan
        self._worker = worker
        parts = urlsplit(plan.base_url)
        tls = _tls_context(plan) if parts.scheme == "https" else None
        port = parts.port or (443 if tls else 80)
        target = Target(
            parts.hostname or "", port, tls, plan.connect_timeout_s, kernel_stamps=plan.kernel_stamps
        )
        self._pool = ConnectionPool(target)
        self._base_path = parts.path
        self._head = _common_head(plan, parts.netloc)

    def perform(self, request: Prepared, scheduled_ns: int, attempt: int = 0) -> RequestRecord:
        """Send *request* and listen to the end, the planned hang-up or the timeout.

        Never raises for what the server or the network did. A greenlet kill ends the exchange as "unfinished"
        and still returns the record.
        """
        exchange = Exchange(
            request, attempt, scheduled_ns, now_ns(), wall_offset_ns(), keep_text=self._plan.keep_text
        )
        try:
            with gevent.Timeout(self._plan.request_timeout_s) as limit:
                self._guarded(exchange)
        except gevent.Timeout as error:
            if error is not limit:
                raise
            exchange.fail(Failure("timeout", "", f"no complete answer in {self._plan.request_timeout_s:g} s"))
        except gevent.GreenletExit:
            exchange.unfinished = True
        return exchange.record(self._worker, now_ns())

    def not_sent(self, request: Prepared, due_ns: int, attempt: int) -> RequestRecord:
        """The record of an attempt that was due at *due_ns*, or later than now, when the run was ended."""
        now = now_ns()
        exchange = Exchange(
            request, attempt, min(due_ns, now), now, wall_offset_ns(), keep_text=self._plan.keep_text
        )
        exchange.unfinished = True
        return exchange.record(self._worker, now)

    def close(self) -> None:
        """Close idle connections."""
        self._pool.close()

    def _guarded(self, exchange: Exchange) -> None:
        try:
            connection = self._pool.take()
            if connection.uses == 0:
                exchange.connected(now_ns())
        except TransportError as error:
            exchange.fail(Failure(error.kind, "", str(error)))
            return
        clean = False
        try:
            clean = self._exchange(connection, exchange)
        except TransportError as error:
            exchange.fail(Failure(error.kind, "", str(error)))
        except HttpError as error:
            exchange.fail(Failure("protocol", "", str(error)))
        finally:
            if clean and self._plan.keep_alive:
                self._pool.give_back(connection)
            else:
                connection.close()

    def _exchange(self, connection: Connection, exchange: Exchange) -> bool:
        """Send and receive; True when the connection may be used again."""
        request = exchange.request
        data = self._serialise(request, exchange.attempt)
        connection.use_wall_offset(exchange.wall_offset_ns)
        exchange.sent(now_ns())
        connection.send(data)
        decoder = ResponseDecoder()
        limit = request.abort_after_chunks
        while not decoder.done:
            data, stamp_ns, by_kernel = connection.receive()
            if not data:
                if not decoder.close():
                    kind = "premature_eof" if decoder.begun else "reset"
                    exchange.fail(Failure(kind, "", "the server closed before the answer was complete"))
                break
            exchange.received(len(data), stamp_ns, by_kernel)
            body = decoder.feed(data)
            if exchange.status is None and decoder.status >= 200:
                _begin_body(exchange, decoder)
            if exchange.streams:
                exchange.meter.feed(body, stamp_ns)
            else:
                exchange.take(body)
            if limit is not None and len(exchange.meter.token_stamps_ns) >= limit:
                exchange.aborted = True
                return False
        if decoder.done:
            self._conclude(exchange, decoder)
        return decoder.done and decoder.keep_alive

    def _conclude(self, exchange: Exchange, decoder: ResponseDecoder) -> None:
        """The response is complete as HTTP has it: what did it say?"""
        if decoder.status != 200:
            exchange.fail(read_refusal(decoder.status, bytes(exchange.body)))
        elif exchange.streams:
            exchange.meter.finish()
        elif exchange.request.stream:
            kind = decoder.headers.get("content-type", "no content type")
            failure = read_answer(bytes(exchange.body)).failure
            exchange.fail(failure or Failure("not_a_stream", "", f"a stream was asked for, {kind} came"))
        else:
            exchange.answer = read_answer(bytes(exchange.body))

    def _serialise(self, request: Prepared, attempt: int) -> bytes:
        flags = "01" if request.sampled else "00"
        name = f"{request.trace_id}-{attempt}" if attempt else request.trace_id
        head = (
            f"POST {self._base_path}{request.path} HTTP/1.1\r\n{self._head}"
            f"X-Request-Id: {name}\r\n"
            f"traceparent: 00-{request.trace_id}-{request.trace_id[:16]}-{flags}\r\n"
            f"Content-Length: {len(request.body)}\r\n\r\n"
        )
        return head.encode("latin-1") + request.body


def _begin_body(exchange: Exchange, decoder: ResponseDecoder) -> None:
    """The headers are here: will this be a stream?"""
    exchange.status = decoder.status
    if decoder.headers.get("content-encoding", "identity").lower() != "identity":
        raise HttpError("the server compressed the answer although we did not offer that")
    content_type = decoder.headers.get("content-type", "").lower()
    exchange.streams = (
        exchange.request.stream and decoder.status == 200 and content_type.startswith("text/event-stream")
    )


def _common_head(plan: LoadPlan, netloc: str) -> str:
    headers = {
        "Host": netloc,
        "User-Agent": "inferwatch-load",
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        "Connection": "keep-alive" if plan.keep_alive else "close",
        **plan.headers,
    }
    if plan.token_file:
        token = Path(plan.token_file).read_text(encoding="utf-8").strip()
        headers["Authorization"] = f"Bearer {token}"
    for name, value in headers.items():
        if "\r" in name + value or "\n" in name + value:
            raise ValueError(f"header {name!r}: a line break cannot stand in a header")
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items())


def _tls_context(plan: LoadPlan) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=plan.ca_file)
    if plan.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
