"""The RAG service's fault switch."""

import urllib3

from inferwatch.stack.errors import StackError


def slow(url: str, stage: str, seconds: float) -> None:
    """Slow one stage from now on. StackError when the service refuses."""
    _call("POST", url, {"stage": stage, "delay_seconds": seconds})


def clear(url: str) -> None:
    """End all faults."""
    _call("DELETE", url, None)


def _call(method: str, url: str, body: dict[str, object] | None) -> None:
    answer = urllib3.request(method, f"{url}/faults", json=body, timeout=10.0, retries=False)
    if answer.status != 200:
        raise StackError(f"{url}/faults answered HTTP {answer.status}: {answer.data[:200]!r}")
