"""A live engine -> everything that the checks look at, gathered once; the only place that sends requests."""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import urllib3

from inferwatch.doctor import page, process
from inferwatch.doctor.page import Page
from inferwatch.doctor.process import ServerProcess

TIMEOUT_SECONDS = 10.0
POLL_SECONDS = 0.5
HEALTH_PATHS = ("/health", "/ping")


@dataclass(frozen=True)
class Answer:
    """An HTTP answer; *status* 0: none came, and *text* says why."""

    status: int
    text: str
    seconds: float

    def json(self) -> Any:
        """Its body, an empty mapping where it is no JSON."""
        try:
            return json.loads(self.text)
        except ValueError:
            return {}


class Client:
    """One engine's HTTP API; follows no redirect, reads no proxy settings, tries once."""

    def __init__(self, url: str, bearer_token: str | None = None) -> None:
        self.url = url.rstrip("/")
        headers = {"User-Agent": "inferwatch"} | (
            {"Authorization": f"Bearer {bearer_token}"} if bearer_token else {}
        )
        self._pool = urllib3.PoolManager(
            retries=False, timeout=urllib3.Timeout(total=TIMEOUT_SECONDS), headers=headers
        )

    def get(self, path: str) -> Answer:
        """GET *path*, or a whole URL."""
        return self._ask("GET", path, None, {})

    def post(self, path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        """POST *body* as JSON."""
        return self._ask("POST", path, json.dumps(body).encode(), headers or {})

    def close(self) -> None:
        """Close idle connections."""
        self._pool.clear()

    def _ask(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        url = path if "://" in path else self.url + path
        began = time.monotonic()
        sent = {**self._pool.headers, **headers} | ({"Content-Type": "application/json"} if body else {})
        try:
            answer = self._pool.request(method, url, body=body, headers=sent, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            return Answer(0, str(error), time.monotonic() - began)
        return Answer(answer.status, answer.data.decode("utf-8", "replace"), time.monotonic() - began)


@dataclass(frozen=True)
class Evidence:
    """
    What was seen of one engine.

    Attributes:
        pages: scrapes of /metrics half a second apart, oldest first; empty when it has none.
        health: path -> HTTP status, 0 when no answer came.
        token: the answer to a request for one token.
        request_id, trace_id: what that request carried.
        process: the server's process, where it runs on this host and may be looked at.
    """

    url: str
    version: str
    model: str
    max_model_len: int | None
    pages: tuple[Page, ...]
    health: Mapping[str, int]
    token: Answer
    request_id: str
    trace_id: str
    process: ServerProcess | None

    @property
    def last(self) -> Page | None:
        """The newest scrape."""
        return self.pages[-1] if self.pages else None

    def flag(self, *names: str) -> str | None:
        """The value of the first flag given at the start, None when none of them was."""
        flags = self.process.flags if self.process else {}
        return next((flags[name] for name in names if name in flags), None)


def gather(client: Client, seconds: float) -> Evidence:
    """Look at one engine for *seconds*, under whatever load it has, and ask it for one token."""
    models = client.get("/v1/models").json()
    first = (models.get("data") or [{}])[0] if isinstance(models, dict) else {}
    version = client.get("/version").json()
    request_id, trace_id = f"inferwatch-{secrets.token_hex(8)}", secrets.token_hex(16)
    health = {path: client.get(path).status for path in HEALTH_PATHS}
    pages = tuple(_watch(client, seconds))
    model = str(first.get("id", ""))
    return Evidence(
        url=client.url,
        version=str(version.get("version", "")) if isinstance(version, dict) else "",
        model=model,
        max_model_len=first.get("max_model_len"),
        pages=pages,
        health=health,
        token=one_token(client, model, "Say yes.", request_id, trace_id),
        request_id=request_id,
        trace_id=trace_id,
        process=process.find(client.url),
    )


def _watch(client: Client, seconds: float) -> list[Page]:
    pages, deadline = [], time.monotonic() + seconds
    while True:
        answer = client.get("/metrics")
        if answer.status == 200:
            try:
                pages.append(page.parse(answer.text))
            except ValueError:
                return pages
        if time.monotonic() >= deadline or answer.status != 200:
            return pages
        time.sleep(POLL_SECONDS)


def one_token(client: Client, model: str, prompt: str, request_id: str, trace_id: str) -> Answer:
    """Ask for one token, sampled into a trace of its own."""
    return client.post(
        "/v1/completions",
        {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0},
        {"X-Request-Id": request_id, "traceparent": f"00-{trace_id}-{secrets.token_hex(8)}-01"},
    )
