"""What an engine went through so far -> findings on KV cache, batch limit and bucket floors."""

import json

from inferwatch.doctor.evidence import Evidence
from inferwatch.doctor.finding import Finding
from inferwatch.doctor.page import Page, histogram
from inferwatch.doctor.settings_checks import NO_METRICS
from slo.buckets import LATENCY_BOUNDS_SECONDS
from slo.spec import Spec

# Preempted this often, requests are computed twice as a matter of course.
PREEMPTED_RATIO = 0.01
# A batch that is full while this much of the KV cache is free is limited by a number, not by memory.
KV_FREE_BELOW = 0.8
FULL_SHARE = 0.5
# A histogram tells a promise from a tenth of it.
FLOOR_SHARE = 0.1
FEWEST_REQUESTS = 10
FINER_BOUNDS = (0.01, 0.05, 0.1)
LENGTHS = ("vllm:request_prompt_tokens", "vllm:request_generation_tokens")


def kv_size(seen: Evidence, _: Spec) -> Finding:
    """Whether the KV cache holds the mix of lengths that was asked for."""
    name, page = "kv-size", seen.last
    if page is None:
        return Finding(name, seen.url, "unknown", NO_METRICS)
    finished, preempted = page.total("vllm:request_success_total"), page.total("vllm:num_preemptions_total")
    if not finished or preempted is None or finished < FEWEST_REQUESTS:
        return Finding(
            name,
            seen.url,
            "unknown",
            f"only {finished or 0:g} requests finished so far; ask again under load",
        )
    capacity, length = _capacity(page), _mean_length(page)
    holds = f", holds {capacity / length:.1f} requests of the mean length" if capacity and length else ""
    said = (
        f"{preempted:g} preemptions in {finished:g} requests; KV cache of {capacity or 0:g} tokens{holds}"
        f" ({length or 0:.0f} tokens)"
    )
    if preempted / finished <= PREEMPTED_RATIO:
        return Finding(name, seen.url, "ok", said)
    return Finding(
        name,
        seen.url,
        "fault",
        said,
        "A preempted request loses its KV blocks and is computed again: throughput falls and its user sees a "
        "stall in the middle of the answer.",
        "a higher --gpu-memory-utilization, a lower --max-num-seqs or --max-model-len, or --kv-cache-dtype fp8",
    )


def _capacity(page: Page) -> float | None:
    """Tokens that the KV cache holds."""
    tokens = page.label("vllm:cache_config_info", "kv_cache_size_tokens")
    if tokens and tokens.isdigit():
        return float(tokens)
    blocks = page.label("vllm:cache_config_info", "num_gpu_blocks")
    size = page.label("vllm:cache_config_info", "block_size")
    return float(blocks) * float(size) if blocks and size and blocks.isdigit() and size.isdigit() else None


def _mean_length(page: Page) -> float | None:
    parts = [found.mean for name in LENGTHS if (found := histogram(page, name)) is not None]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(LENGTHS) else None


def batch_limit(seen: Evidence, _: Spec) -> Finding:
    """Whether requests wait although the KV cache has room: then a number limits the batch."""
    name = "batch-limit"
    if not seen.pages:
        return Finding(name, seen.url, "unknown", NO_METRICS)
    states = [_state(page) for page in seen.pages]
    limited = [
        s for s, page in zip(states, seen.pages, strict=True) if s[0] > 0 and s[1] > 0 and _fits(page, s[2])
    ]
    busy = [s for s in states if s[0] > 0]
    running, waiting = max(s[0] for s in states), max(s[1] for s in states)
    kv = max(s[2] for s in states)
    said = f"up to {running:g} running and {waiting:g} waiting with at most {kv:.0%} of the KV cache used"
    if not busy:
        return Finding(name, seen.url, "unknown", "no request ran meanwhile; ask again under load")
    if len(limited) < max(2.0, FULL_SHARE * len(busy)):
        return Finding(name, seen.url, "ok", said)
    limit = seen.flag("max-num-seqs")
    return Finding(
        name,
        seen.url,
        "fault",
        said + (f"; started with --max-num-seqs {limit}" if limit else ""),
        "Requests wait although there is room for them: the batch is held down by its limit, and the queue is "
        "time to first token for everyone.",
        "a higher --max-num-seqs (and --max-num-batched-tokens, where prompts are long)",
    )


def _fits(page: Page, used: float) -> bool:
    """Whether the KV cache has room for two more requests of the mean length, and is far from full."""
    capacity, length = _capacity(page), _mean_length(page)
    roomy = capacity is None or length is None or capacity * (1 - used) >= 2 * length
    return used < KV_FREE_BELOW and roomy


def _state(page: Page) -> tuple[float, float, float]:
    """Running, waiting, used share of the KV cache."""
    used = [v for _, v in page.of("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")]
    running, waiting = page.total("vllm:num_requests_running"), page.total("vllm:num_requests_waiting")
    return running or 0.0, waiting or 0.0, max(used, default=1.0)


def bucket_floor(seen: Evidence, spec: Spec) -> Finding:
    """Whether queue times that eat a promise can be seen at all."""
    name, page = "bucket-floor", seen.last
    found = histogram(page, "vllm:request_queue_time_seconds") if page else None
    if found is None:
        return Finding(name, seen.url, "unknown", NO_METRICS if page is None else "no queue-time histogram")
    promise = min(
        slo.threshold_seconds
        for service in spec.services
        for slo in service.slos
        if slo.kind == "latency" and slo.threshold_seconds and slo.sli != "time_per_output_token"
    )
    lowest, under = found.buckets[0]
    share = f"; {under / found.count:.0%} of {found.count:g} requests are under it" if found.count else ""
    said = f"the lowest bound of the queue-time histogram is {lowest:g} s{share}"
    if lowest <= FLOOR_SHARE * promise:
        return Finding(name, seen.url, "ok", said)
    return Finding(
        name,
        seen.url,
        "fault",
        said,
        f"Any quantile under {lowest:g} s is a guess between 0 and {lowest:g} s, while {promise:g} s is promised "
        "to the first token: most of that can be lost in the queue before it is seen.",
        "--custom-histogram-buckets '"
        + json.dumps({"request_latency": finer_bounds()})
        + "' (from vLLM 0.32; on every replica alike)",
    )


def finer_bounds() -> list[float]:
    """The engine's own bounds of request latency with finer ones under them, as the flag takes them."""
    return [*FINER_BOUNDS, *LATENCY_BOUNDS_SECONDS["request_duration"]]
