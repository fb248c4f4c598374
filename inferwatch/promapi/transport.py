"""One HTTP request to a Prometheus-style API -> decoded JSON, or a PromError that says what to mend."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import urllib3

from inferwatch.promapi.errors import PromError

Params = Sequence[tuple[str, str]]
MAX_BODY_BYTES = 64 * 1024 * 1024


class Transport:
    """
    A small connection pool to one base URL. Never follows redirects, never reads proxy settings.

    Args:
        base_url: scheme, host, port and optional path prefix, for example ``http://127.0.0.1:9090``.
        timeout_seconds: for connecting and for each read.
        bearer_token: sent as Authorization, when the API asks for one.
        ca_file: CA bundle to trust instead of the system's.
    """

    def __init__(
        self,
        base_url: str,
        *,
        timeout_seconds: float = 10.0,
        bearer_token: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        parsed = urllib3.util.parse_url(base_url)
        if parsed.scheme not in {"http", "https"} or not parsed.host:
            raise PromError(f"{base_url!r} is not an http(s) URL; give one like http://127.0.0.1:9090")
        self.base_url = base_url.rstrip("/")
        headers = {"Accept": "application/json", "User-Agent": "inferwatch"}
        if bearer_token:
            headers["Authorization"] = f"Bearer {bearer_token}"
        self._pool = urllib3.PoolManager(
            timeout=urllib3.Timeout(connect=timeout_seconds, read=timeout_seconds),
            retries=False,
            headers=headers,
            ca_certs=ca_file,
        )

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def is_ready(self, path: str = "/-/ready") -> bool:
        """Whether *path* answers 200; an unreachable server is simply not ready."""
        try:
            return self._pool.request("GET", self.base_url + path).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def post(self, path: str) -> None:
        """POST with no body (reload, quit); raises PromError on anything but 2xx."""
        status, body = self._send("POST", path, ())
        if status // 100 != 2:
            raise PromError(f"{self.base_url}{path} answered HTTP {status}: {_excerpt(body)}")

    def json(self, method: str, path: str, params: Params = ()) -> Any:
        """Decoded JSON of the answer, whatever its HTTP status, for the caller to judge by content."""
        status, body = self._send(method, path, params)
        try:
            decoded = json.loads(body)
        except ValueError:
            raise PromError(
                f"{self.base_url}{path} answered HTTP {status} with something that is not JSON "
                f"({_excerpt(body)}); is this the right server?"
            ) from None
        if status // 100 != 2 and not (isinstance(decoded, Mapping) and "error" in decoded):
            raise PromError(f"{self.base_url}{path} answered HTTP {status}: {_excerpt(body)}")
        return decoded

    def _send(self, method: str, path: str, params: Params) -> tuple[int, bytes]:
        url, body, headers = self.base_url + path, None, {}
        if params and method == "POST":
            body = urlencode(params)
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
        elif params:
            url = f"{url}?{urlencode(params)}"
        try:
            answer = self._pool.request(
                method,
                url,
                body=body,
                headers={**self._pool.headers, **headers},
                redirect=False,
                preload_content=False,
            )
            try:
                content = answer.read(MAX_BODY_BYTES + 1)
            finally:
                answer.release_conn()
        except urllib3.exceptions.HTTPError as error:
            why = str(error).rpartition(": ")[2]  # before it stand urllib3's own names
            raise PromError(f"{self.base_url} cannot be reached ({why}); is it running there?") from error
        if len(content) > MAX_BODY_BYTES:
            raise PromError(
                f"{self.base_url}{path} answered more than {MAX_BODY_BYTES} bytes; narrow the query"
            )
        return answer.status, content


def _excerpt(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip() or "empty body"
