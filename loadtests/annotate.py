"""A load run's begin and end -> an annotation over the graphs of a Grafana, so that a bend has its cause beside it."""

import json
import urllib.error
import urllib.request
from pathlib import Path

_TIMEOUT_S = 5.0
TAG = "load-run"


class AnnotationError(RuntimeError):
    """Grafana did not take the annotation; the message names its URL and why."""


class Annotation:
    """One run in Grafana's annotations: made when it begins, stretched to its end by `end`."""

    def __init__(self, grafana_url: str, token_file: Path | None, text: str, began_s: float) -> None:
        """Post it; *token_file* holds a service-account token. Raises AnnotationError."""
        self._url = grafana_url.rstrip("/") + "/api/annotations"
        self._token = token_file.read_text(encoding="utf-8").strip() if token_file else None
        answer = self._send("POST", self._url, {"time": int(began_s * 1e3), "tags": [TAG], "text": text})
        self._id = answer.get("id")
        if self._id is None:
            raise AnnotationError(f"{self._url}: answered without an id: {answer}")

    def end(self, ended_s: float, text: str) -> None:
        """Make it a region up to *ended_s* (Unix time) and give it its last text. Raises AnnotationError."""
        self._send("PATCH", f"{self._url}/{self._id}", {"timeEnd": int(ended_s * 1e3), "text": text})

    def _send(self, method: str, url: str, body: dict[str, object]) -> dict[str, object]:
        request = urllib.request.Request(url, json.dumps(body).encode(), method=method)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                found = json.loads(answer.read())
        except (OSError, urllib.error.URLError, ValueError) as error:
            raise AnnotationError(
                f"{url}: {error}; is it Grafana, and may the token write annotations?"
            ) from error
        return found if isinstance(found, dict) else {}
