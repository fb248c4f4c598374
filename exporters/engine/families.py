"""The canonical families: name (from slo.names.engine), type and help, in the order of the answer."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from slo.names import engine as names


@dataclass(frozen=True)
class Family:
    """One family of the answer. Units stand in the name; ratios are 0 to 1."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str

    @cached_property
    def header(self) -> bytes:
        """The HELP and TYPE lines."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n".encode()


def _counter(name: str, text: str) -> Family:
    return Family(name, "counter", text)


def _gauge(name: str, text: str) -> Family:
    return Family(name, "gauge", text)


def _histogram(name: str, text: str) -> Family:
    return Family(name, "histogram", text)


TTFT = _histogram(names.TIME_TO_FIRST_TOKEN_SECONDS, "Time from arrival to the first output token.")
ITL = _histogram(
    names.INTER_TOKEN_LATENCY_SECONDS, "Time between two streamed outputs of a request; one sample an output."
)
TPOT = _histogram(
    names.TIME_PER_OUTPUT_TOKEN_SECONDS,
    "Mean time per output token of a request; one sample a finished request.",
)
DURATION = _histogram(
    names.REQUEST_DURATION_SECONDS, "Time from arrival to the last token of a finished request."
)
QUEUE = _histogram(
    names.REQUEST_QUEUE_SECONDS, "Time a finished request waited before it was first scheduled."
)
PREFILL = _histogram(
    names.REQUEST_PREFILL_SECONDS, "Time from first scheduled to first token of a finished request."
)
DECODE = _histogram(names.REQUEST_DECODE_SECONDS, "Time from first to last token of a finished request.")
REQUESTS = _counter(
    names.REQUESTS_TOTAL, "Finished requests by reason; client aborts are in none of them on vLLM."
)
HTTP = _counter(
    names.HTTP_REQUESTS_TOTAL, "HTTP answers by handler and code class, as the engine's server counts them."
)
PROMPT_TOKENS = _counter(
    names.PROMPT_TOKENS_TOTAL, "Prompt tokens of requests whose prefill ended, cached ones included."
)
GENERATION_TOKENS = _counter(names.GENERATION_TOKENS_TOTAL, "Generated tokens, counted at each engine step.")
CACHED_TOKENS = _counter(
    names.PROMPT_TOKENS_CACHED_TOTAL, "Prompt tokens served from a cache, by where they lay."
)
PREFIX_QUERIED = _counter(
    names.PREFIX_CACHE_QUERIED_TOKENS_TOTAL, "Prompt tokens looked up in the prefix cache."
)
PREFIX_HIT = _counter(names.PREFIX_CACHE_HIT_TOKENS_TOTAL, "Prompt tokens found in the prefix cache.")
PREEMPTIONS = _counter(
    names.PREEMPTIONS_TOTAL, "Running requests put back to the queue for want of KV cache."
)
REJECTIONS = _counter(
    names.ADMISSION_REJECTIONS_TOTAL, "Requests refused at admission because a queue limit was reached."
)
RUNNING = _gauge(names.REQUESTS_RUNNING, "Requests in the running batch after the last engine step.")
WAITING = _gauge(names.REQUESTS_WAITING, "Requests that wait to be scheduled.")
KV_USAGE = _gauge(names.KV_CACHE_USAGE_RATIO, "Share of KV cache held by live requests, 0 to 1.")
KV_CAPACITY = _gauge(names.KV_CACHE_CAPACITY_TOKENS, "Tokens that the KV cache of one engine core can hold.")
ITERATION = _histogram(
    names.ITERATION_TOKENS, "Tokens computed in one engine step; the count is the engine's steps."
)
REQUEST_PROMPT = _histogram(names.REQUEST_PROMPT_TOKENS, "Prompt tokens of a finished request.")
REQUEST_GENERATION = _histogram(names.REQUEST_GENERATION_TOKENS, "Generated tokens of a finished request.")
UP = _gauge(
    names.ENGINE_UP, "1 for each engine core whose metrics were read; absent, never 0, when they were not."
)
INFO = _gauge(names.ENGINE_INFO, "1; which engine and version answers, and whether it is a simulation.")
SLEEPING = _gauge(
    names.ENGINE_SLEEPING, "1 while the engine core sleeps (its health endpoint still answers 200)."
)
LORA_RUNNING = _gauge(names.LORA_ADAPTERS_RUNNING, "LoRA adapters with running requests.")
LORA_WAITING = _gauge(names.LORA_ADAPTERS_WAITING, "LoRA adapters with waiting requests.")
LORA_LIMIT = _gauge(names.LORA_ADAPTERS_LIMIT, "LoRA adapters that may be in one batch.")
LORA_INFO = _gauge(names.LORA_ADAPTER_INFO, "1 for each LoRA adapter with running or waiting requests.")

PROBE_SUCCESS = _gauge(names.PROBE_SUCCESS, "1 when the engine's metrics were read and translated, else 0.")
PROBE_FAILURE = _gauge(names.PROBE_FAILURE, "1 for the reason that this probe failed for, 0 for every other.")
PROBE_DURATION = _gauge(names.PROBE_DURATION_SECONDS, "Time this probe took, name lookup included.")
PROBE_BODY = _gauge(
    names.PROBE_BODY_BYTES, "Bytes of the engine's answer, decompressed, as far as they were read."
)
PROBE_SERIES = _gauge(names.PROBE_SERIES, "Samples of the engine in this answer.")
PROBE_PARSE_ERRORS = _gauge(
    names.PROBE_PARSE_ERRORS, "Lines of the engine's answer that were left out as unreadable."
)
PROBE_STATUS = _gauge(
    names.PROBE_HTTP_STATUS, "HTTP status of the engine's answer; absent when there was none."
)
