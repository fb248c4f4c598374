"""The metric families of vLLM 0.32.0 as data: names, types, labels, bounds, in order.

Held to recordings of the real server by tests/sim/test_contract.py; help texts are ours.
"""

from dataclasses import dataclass

from sim.request import FinishReason

TIME_TO_FIRST_TOKEN_BOUNDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
TOKEN_GAP_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
    1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
REQUEST_BOUNDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
RESIDENCY_BOUNDS = (
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0,
    20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0,
)  # fmt: skip
ITERATION_BOUNDS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
PREEMPTION_BOUNDS = (1, 2, 3, 4, 5, 10, 20)
N_BOUNDS = (1, 2, 5, 10, 20)
SLEEP_BOUNDS = (0.01, 0.1, 1, 10, 30, 60, 120, 300, 600)
HTTP_FINE_BOUNDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5,
    3, 3.5, 4, 4.5, 5, 7.5, 10, 30, 60,
)  # fmt: skip
HTTP_COARSE_BOUNDS = (0.1, 0.5, 1)

TOKEN_BOUNDS_KEY = "up to max_model_len"


@dataclass(frozen=True)
class Family:
    """One family; `values` is the closed value set of its one extra label, if it has one.

    `name` is what the client library is given: counters without `_total`.
    """

    name: str
    kind: str
    text: str
    label: str = ""
    values: tuple[str, ...] = ()
    bounds: tuple[float, ...] | str = ()


CACHE_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")

FAMILIES = (
    Family("vllm:estimated_flops_per_gpu", "counter", "Estimated operations a GPU; 0 when not measured."),
    Family("vllm:estimated_read_bytes_per_gpu", "counter", "Estimated bytes read a GPU."),
    Family("vllm:estimated_write_bytes_per_gpu", "counter", "Estimated bytes written a GPU."),
    Family("vllm:num_requests_running", "gauge", "Requests in the running batch."),
    Family("vllm:num_requests_waiting", "gauge", "Requests that wait to be scheduled."),
    Family(
        "vllm:num_requests_waiting_by_reason", "gauge", "Waiting requests by what they wait for.",
        "reason", ("capacity", "deferred"),
    ),
    Family(
        "vllm:engine_sleep_state", "gauge", "1 for the state that the engine is in.",
        "sleep_state", ("awake", "weights_offloaded", "discard_all"),
    ),
    Family("vllm:kv_cache_usage_perc", "gauge", "Share of KV blocks held by requests, 0 to 1."),
    Family("vllm:prefix_cache_queries", "counter", "Prompt tokens looked up in the prefix cache."),
    Family("vllm:prefix_cache_hits", "counter", "Prompt tokens found in the prefix cache."),
    Family("vllm:external_prefix_cache_queries", "counter", "Tokens looked up in a KV connector."),
    Family("vllm:external_prefix_cache_hits", "counter", "Tokens found in a KV connector."),
    Family("vllm:mm_cache_queries", "counter", "Items looked up in the multimodal cache."),
    Family("vllm:mm_cache_hits", "counter", "Items found in the multimodal cache."),
    Family("vllm:num_preemptions", "counter", "Preemptions so far."),
    Family("vllm:prompt_tokens", "counter", "Prompt tokens of requests whose prefill is done."),
    Family(
        "vllm:prompt_tokens_by_source", "counter", "Prompt tokens by where their KV came from.",
        "source", ("local_compute", "local_cache_hit", "external_kv_transfer"),
    ),
    Family("vllm:prompt_tokens_cached", "counter", "Prompt tokens that were not computed."),
    Family(
        "vllm:prompt_tokens_cached_by_source", "counter", "Cached prompt tokens by cache tier.",
        "source", CACHE_TIERS,
    ),
    Family("vllm:generation_tokens", "counter", "Tokens generated."),
    Family(
        "vllm:request_success", "counter", "Finished requests by reason.",
        "finished_reason", tuple(reason.value for reason in FinishReason),
    ),
    Family(
        "vllm:admission_rejections", "counter", "Requests refused because the queue is full.",
        "reason", ("max_num_queued_reqs", "max_num_queued_tokens"),
    ),
    Family("vllm:request_prompt_tokens", "histogram", "Prompt tokens a request.", bounds=TOKEN_BOUNDS_KEY),
    Family(
        "vllm:request_generation_tokens", "histogram", "Generated tokens a request.",
        bounds=TOKEN_BOUNDS_KEY,
    ),
    Family(
        "vllm:iteration_tokens_total", "histogram", "Tokens an engine step.", bounds=ITERATION_BOUNDS
    ),
    Family(
        "vllm:request_max_num_generation_tokens", "histogram", "Longest answer of a request's choices.",
        bounds=TOKEN_BOUNDS_KEY,
    ),
    Family("vllm:request_params_n", "histogram", "Choices asked for.", bounds=N_BOUNDS),
    Family("vllm:request_params_max_tokens", "histogram", "Token limit asked for.", bounds=TOKEN_BOUNDS_KEY),
    Family(
        "vllm:time_to_first_token_seconds", "histogram", "Arrival to first token.",
        bounds=TIME_TO_FIRST_TOKEN_BOUNDS,
    ),
    Family(
        "vllm:inter_token_latency_seconds", "histogram", "Between two outputs of a request.",
        bounds=TOKEN_GAP_BOUNDS,
    ),
    Family(
        "vllm:request_time_per_output_token_seconds", "histogram", "Decode time a later token.",
        bounds=TOKEN_GAP_BOUNDS,
    ),
    Family("vllm:e2e_request_latency_seconds", "histogram", "Arrival to end.", bounds=REQUEST_BOUNDS),
    Family("vllm:request_queue_time_seconds", "histogram", "Queued to scheduled.", bounds=REQUEST_BOUNDS),
    Family(
        "vllm:request_inference_time_seconds", "histogram", "Scheduled to last token.",
        bounds=REQUEST_BOUNDS,
    ),
    Family(
        "vllm:request_prefill_time_seconds", "histogram", "Scheduled to first token.", bounds=REQUEST_BOUNDS
    ),
    Family(
        "vllm:request_decode_time_seconds", "histogram", "First to last token.", bounds=REQUEST_BOUNDS
    ),
    Family(
        "vllm:request_num_preemptions", "histogram", "Preemptions a request.", bounds=PREEMPTION_BOUNDS
    ),
    Family(
        "vllm:request_prefill_kv_computed_tokens", "histogram", "Prompt tokens computed a request.",
        bounds=TOKEN_BOUNDS_KEY,
    ),
)  # fmt: skip

# Only with --kv-cache-metrics, as in vLLM.
RESIDENCY_FAMILIES = (
    Family(
        "vllm:kv_block_lifetime_seconds", "histogram", "Block lent to evicted.", bounds=RESIDENCY_BOUNDS
    ),
    Family(
        "vllm:kv_block_idle_before_evict_seconds", "histogram", "Last use to evicted.",
        bounds=RESIDENCY_BOUNDS,
    ),
    Family(
        "vllm:kv_block_reuse_gap_seconds", "histogram", "Between two uses of a block.",
        bounds=RESIDENCY_BOUNDS,
    ),
)  # fmt: skip


def token_bounds(max_model_len: int) -> list[float]:
    """The 1-2-5 series up to and including `max_model_len`."""
    bounds: list[float] = []
    scale = 1
    while True:
        for digit in (1, 2, 5):
            if digit * scale > max_model_len:
                return bounds
            bounds.append(digit * scale)
        scale *= 10


def cache_config_labels(*, block_size: int, num_blocks: int, max_model_len: int) -> dict[str, str]:
    """Labels of `vllm:cache_config_info`: every field of the cache configuration, as text."""
    tokens = num_blocks * block_size
    return {
        "_block_size_resolved": "True",
        "block_size": str(block_size),
        "cache_dtype": "auto",
        "cache_hit_alignment_tokens": "None",
        "effective_attention_block_size": str(block_size),
        "enable_mamba_shared_prefix_checkpoint": "False",
        "enable_prefix_caching": "True",
        "engine": "0",
        "gpu_memory_utilization": "0.92",
        "hash_block_size": "None",
        "is_attention_free": "False",
        "kv_cache_dtype_skip_layers": "[]",
        "kv_cache_layout": "None",
        "kv_cache_max_concurrency": str(tokens / max_model_len),
        "kv_cache_memory_bytes": "None",
        "kv_cache_size_tokens": str(tokens),
        "kv_offloading_backend": "native",
        "kv_offloading_size": "None",
        "kv_sharing_fast_prefill": "False",
        "mamba_block_size": "None",
        "mamba_cache_dtype": "auto",
        "mamba_cache_mode": "none",
        "mamba_page_size_padded": "None",
        "mamba_ssm_cache_dtype": "float32",
        "num_cpu_blocks": "None",
        "num_gpu_blocks": str(num_blocks),
        "num_gpu_blocks_override": str(num_blocks),
        "prefix_cache_retention_interval": "0",
        "prefix_caching_hash_algo": "sha256",
        "prefix_match_unit": "None",
        "replayssm_buffer_len": "16",
        "skip_page_size_padded": "None",
        "sliding_window": "None",
        "swa_bounded_replay": "True",
        "use_kda_recoverssm": "False",
        "use_replayssm": "False",
        "user_specified_block_size": "False",
    }
