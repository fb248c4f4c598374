"""Calls -> a bounded queue -> POSTs from one background thread; what does not fit is dropped and counted.

Needs only the standard library. Neither call ever blocks on the network or raises: a wrong argument, a full
queue and a failing exporter are counts in `stats()`.
"""

import http.client
import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from urllib.parse import urlsplit

from inferwatch.drift_client import body
from inferwatch.drift_client.body import Body

log = logging.getLogger(__name__)

_BACKOFF_SECONDS = (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Stats:
    """Calls so far: *sent* and answered 200, *dropped* (queue full or closed), *failed* to arrive, *refused*
    (the exporter's 4xx, or an argument that is no batch), *skipped* by the sampling ratio."""

    sent: int = 0
    dropped: int = 0
    failed: int = 0
    refused: int = 0
    skipped: int = 0


class DriftClient:
    """
    Tells the exporter at *url* (its ingest port) of embeddings of *model*.

    *token*: the ingest token. *sample_ratio*: share of embedding calls that are sent. *queue*: calls that wait
    at most. *timeout_seconds*: of one POST. Use as a context manager, or call close().
    """

    def __init__(
        self, url: str, model: str, *, version: str = "", tenant: str = "", token: str | None = None,
        sample_ratio: float = 1.0, queue: int = 256, timeout_seconds: float = 5.0,
    ) -> None:  # fmt: skip
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
            raise ValueError(f"url {url!r} is no base URL; write for example http://127.0.0.1:9491")
        if not 0 <= sample_ratio <= 1 or queue < 1:
            raise ValueError(f"sample_ratio {sample_ratio} must lie in 0..1, queue {queue} must be 1 or more")
        self._parts, self._timeout = parts, timeout_seconds
        self._model, self._version, self._tenant = model, version, tenant
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._ratio = sample_ratio
        self._queue: deque[Callable[[], Body]] = deque()
        self._most = queue
        self._counts = {"sent": 0, "dropped": 0, "failed": 0, "refused": 0, "skipped": 0}
        self._wake = threading.Condition()
        self._closed = False
        self._busy = False
        self._thread = threading.Thread(target=self._run, name="inferwatch drift client", daemon=True)
        self._thread.start()

    def __enter__(self) -> "DriftClient":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def embeddings(self, vectors: object, *, tenant: str | None = None) -> None:
        """
        Tell of vectors: an array of shape (n, d), or a list of lists of numbers. Returns at once.

        They are encoded later, on the client's own thread: do not change them in place.
        """
        if self._ratio < 1 and random.random() >= self._ratio:
            self._count("skipped")
            return
        whose = self._tenant if tenant is None else tenant
        self._put(partial(body.vectors, vectors, self._model, self._version, whose))

    def retrieval(
        self, scores: Sequence[float], *, seconds: float | None = None, query_characters: int | None = None,
        tenant: str | None = None,
    ) -> None:  # fmt: skip
        """Tell of one retrieval: similarities of its hits (none: empty), its duration, its query's length."""
        whose = self._tenant if tenant is None else tenant
        self._put(partial(body.retrieval, scores, seconds, query_characters, whose))

    def stats(self) -> Stats:
        """Counts so far."""
        with self._wake:
            return Stats(**self._counts)

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until the queue is empty; False when it was not within the timeout. For tests and shutdown."""
        deadline = time.monotonic() + timeout_seconds
        with self._wake:
            while self._queue or self._busy:
                left = deadline - time.monotonic()
                if left <= 0 or not self._thread.is_alive():
                    return False
                self._wake.wait(min(left, 0.1))
        return True

    def close(self, timeout_seconds: float = 2.0) -> None:
        """Send what still waits for at most the timeout, then end the thread; what is left is dropped."""
        self.flush(timeout_seconds)
        with self._wake:
            self._closed = True
            self._counts["dropped"] += len(self._queue)
            self._queue.clear()
            self._wake.notify_all()
        self._thread.join(timeout_seconds)

    def _put(self, encode: Callable[[], Body]) -> None:
        with self._wake:
            if self._closed or len(self._queue) >= self._most:
                self._counts["dropped"] += 1
                return
            self._queue.append(encode)
            self._wake.notify()

    def _count(self, what: str) -> None:
        with self._wake:
            self._counts[what] += 1

    def _run(self) -> None:
        failures = 0
        while (encode := self._next()) is not None:
            outcome = self._deliver(encode)
            with self._wake:
                self._counts[outcome] += 1
                self._busy = False
                self._wake.notify_all()
                failures = failures + 1 if outcome == "failed" else 0
                if failures and not self._closed:
                    self._wake.wait_for(
                        lambda: self._closed, _BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS)) - 1]
                    )

    def _next(self) -> Callable[[], Body] | None:
        with self._wake:
            while not self._queue:
                if self._closed:
                    return None
                self._wake.wait()
            self._busy = True
            return self._queue.popleft()

    def _deliver(self, encode: Callable[[], Body]) -> str:
        """What became of one call: sent, failed or refused."""
        try:
            one = encode()
        except Exception as error:  # noqa: BLE001 # whatever was given must not end the thread
            log.warning("a call that cannot be sent: %s", error)
            return "refused"
        try:
            status = self._post(one)
        except (OSError, http.client.HTTPException) as error:
            log.debug("the drift exporter does not answer: %s", error)
            return "failed"
        except ValueError as error:  # a token or a name that no header can carry
            log.warning("a call that cannot be sent: %s", error)
            return "refused"
        return "sent" if status == 200 else "failed" if status >= 500 else "refused"

    def _post(self, one: Body) -> int:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=self._timeout)
        try:
            path = self._parts.path.rstrip("/") + one.path
            connection.request("POST", path, one.data, {"Content-Type": one.content_type, **self._headers})
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()
