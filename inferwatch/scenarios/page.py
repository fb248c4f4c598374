"""A recorded vLLM /metrics page -> the page of an engine whose traffic goes on as it was recorded."""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path

from inferwatch.scenarios.shown import Page

RECORDED = Path(__file__).parent / "recordings" / "vllm-0.26.0-h200.txt.gz"
WHOLE_REQUESTS = "vllm:e2e_request_latency_seconds"
"""The histogram whose bounds and scale are edited."""
RUNNING = "vllm:num_requests_running"
_SAMPLE = re.compile(r"^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)$")
_GROWING = ("_total", "_bucket", "_count", "_sum")
_BOUND = re.compile(r'le="([^"]+)"')


@dataclass(frozen=True)
class _Line:
    """A sample of the recording, or a comment (no family)."""

    text: str
    family: str = ""
    value: float = 0.0
    bound: str = ""

    @property
    def grows(self) -> bool:
        return self.family.startswith(("vllm:", "http_")) and self.family.endswith(_GROWING)


def load(path: Path = RECORDED) -> tuple[list[_Line], float]:
    """Return the page's lines and how many requests it has counted."""
    lines = [_line(text) for text in gzip.decompress(path.read_bytes()).decode().splitlines()]
    requests = next(line.value for line in lines if line.family == f"{WHOLE_REQUESTS}_count")
    return lines, requests


def _line(text: str) -> _Line:
    found = _SAMPLE.match(text)
    if found is None:
        return _Line(text)
    family, labels, value = found.groups()
    bound = _BOUND.search(labels or "")
    return _Line(f"{family}{labels or ''}", family, float(value), bound.group(1) if bound else "")


class Served:
    """One engine's page; counters go on by the recorded page once every so many requests."""

    def __init__(self, requests_per_second: float, path: Path = RECORDED) -> None:
        self._lines, requests = load(path)
        self._rate = requests_per_second / requests
        self._repeated = self._on_scale = 1.0
        self.page = Page()

    def advance(self, seconds: float) -> None:
        """Let so much time pass under the page that is on."""
        self._repeated += seconds * self._rate
        self._on_scale += seconds * self._rate * (1.0 - self.page.off_scale)

    def text(self) -> str:
        """The page now."""
        return "\n".join(shown for line in self._lines if (shown := self._shown(line)) is not None) + "\n"

    def _shown(self, line: _Line) -> str | None:
        if not line.family:
            return line.text
        if line.family == RUNNING:
            return f"{line.text} {float(self.page.running)}"
        if not line.grows:
            return f"{line.text} {line.value!r}"
        if line.family == f"{WHOLE_REQUESTS}_bucket" and line.bound != "+Inf":
            if self.page.bounds and line.bound not in self.page.bounds:
                return None
            return f"{line.text} {line.value * self._on_scale!r}"
        return f"{line.text} {line.value * self._repeated!r}"
