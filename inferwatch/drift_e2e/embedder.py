"""all-MiniLM-L6-v2 behind a real vLLM's /v1/embeddings, on one CPU core."""

from typing import Any, Protocol

import urllib3

from inferwatch.bench import drift_sources
from inferwatch.stack import processes, vllm_cpu
from inferwatch.stack.errors import StackError
from inferwatch.stack.processes import Service
from inferwatch.stack.progress import Reporter
from inferwatch.stack.settings import HOST, Settings
from inferwatch.stack.state import Record

MODEL = "all-minilm-l6-v2"
SWAPPED = "all-minilm-l6-v2-cls"
READY_SECONDS = 240.0


class Embedder(Protocol):
    """An embedding server that can be started with another model under the same URL."""

    url: str

    def start(self, swapped: bool = False) -> str:
        """Start it, anew where it runs; returns the name that the model is served under."""

    def stop(self) -> None:
        """End it."""


class VllmEmbedder:
    """The model as it ships; swapped: another pooling under another name, as a careless deploy does."""

    def __init__(
        self,
        installed: vllm_cpu.VllmCpu,
        sources: drift_sources.Sources,
        settings: Settings,
        reporter: Reporter,
    ) -> None:
        self._installed, self._sources, self._settings, self._reporter = (
            installed,
            sources,
            settings,
            reporter,
        )
        self._record: Record | None = None
        self.url = settings.url("engine")

    def start(self, swapped: bool = False) -> str:
        """Start vLLM and wait until it answers; StackError when it does not."""
        self.stop()
        name = SWAPPED if swapped else MODEL
        service = self._service(name, ("--pooler-config", '{"pooling_type": "CLS"}') if swapped else ())
        self._record = processes.start(service, self._settings.logs_dir)
        with self._reporter.task(f"starting vLLM with {name}"):
            processes.wait_ready(service, self._record, self._reporter)
        return name

    def stop(self) -> None:
        """End the server and its core."""
        if self._record is not None:
            processes.stop(self._record)
            self._record = None

    def _service(self, name: str, more: tuple[str, ...]) -> Service:
        base = vllm_cpu.service(self._installed, self._settings)
        argv = [
            *(str(self._installed.python.with_name("vllm")), "serve", str(self._sources.model_dir)),
            *("--runner", "pooling", "--served-model-name", name, "--host", HOST),
            *("--port", str(self._settings.port("engine")), "--dtype", "float32", "--enforce-eager"),
            *("--max-num-seqs", "64", "--uvicorn-log-level", "warning", *more),
        ]
        return Service(
            name="embedder",
            argv=tuple(argv),
            url=self.url,
            ready_path="/health",
            env=base.env,
            cores=base.cores,
            ready_timeout_seconds=READY_SECONDS,
        )


def embed(url: str, model: str, texts: list[str], headers: dict[str, str] | None = None) -> list[list[float]]:
    """Vectors of *texts* by the server at *url*; StackError when it does not give them."""
    try:
        answer = urllib3.request(
            "POST", f"{url}/v1/embeddings", json={"model": model, "input": texts}, headers=headers,
            timeout=60.0, retries=False,
        )  # fmt: skip
    except urllib3.exceptions.HTTPError as error:
        raise StackError(f"{url} does not answer: {error}") from error
    if answer.status != 200:
        raise StackError(f"{url} answered HTTP {answer.status}: {answer.data[:200]!r}")
    found: list[Any] = answer.json()["data"]
    return [one["embedding"] for one in found]


def embed_all(url: str, model: str, texts: list[str], batch: int = 32) -> list[list[float]]:
    """The same for many texts, a batch at a time."""
    return [
        vector
        for begin in range(0, len(texts), batch)
        for vector in embed(url, model, texts[begin : begin + batch])
    ]
