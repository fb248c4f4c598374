"""What an engine was started with -> findings: caches, queue limit, adapters, processes, readiness, versions."""

from collections.abc import Iterable

from inferwatch.doctor.evidence import Evidence
from inferwatch.doctor.finding import Finding
from inferwatch.stack.versions import numbers

NO_METRICS = "/metrics gives no page that can be read"
NOT_LOCAL = (
    "no vLLM process behind this address is visible here; run this on the engine's host, as its user or root"
)
# The first release whose servers refuse requests by themselves.
QUEUE_LIMIT_SINCE = (0, 31)


def prefix_caching(seen: Evidence) -> Finding:
    """Whether the engine reuses what it computed for shared prefixes."""
    name = "prefix-caching"
    if seen.last is None:
        return Finding(name, seen.url, "unknown", NO_METRICS)
    enabled = seen.last.label("vllm:cache_config_info", "enable_prefix_caching")
    if enabled is None:
        return Finding(name, seen.url, "unknown", "no vllm:cache_config_info with enable_prefix_caching")
    if enabled == "True":
        return Finding(name, seen.url, "ok", "vllm:cache_config_info says enable_prefix_caching=True")
    return Finding(
        name,
        seen.url,
        "fault",
        f"vllm:cache_config_info says enable_prefix_caching={enabled}",
        "System prompts and chat histories are computed anew for every request; prefill and time to first "
        "token pay for it.",
        "--enable-prefix-caching",
    )


def admission_limit(seen: Evidence) -> Finding:
    """Whether the engine refuses work that it cannot do in time."""
    name = "admission-limit"
    limit = seen.flag("max-num-queued-reqs", "max-num-queued-tokens")
    if limit is not None:
        return Finding(name, seen.url, "ok", f"its queue is limited to {limit}")
    if seen.process is None:
        return Finding(name, seen.url, "unknown", NOT_LOCAL)
    waited = max((p.total("vllm:num_requests_waiting") or 0.0 for p in seen.pages), default=0.0)
    new = numbers(seen.version)[:2] >= QUEUE_LIMIT_SINCE
    return Finding(
        name,
        seen.url,
        "fault",
        f"started without --max-num-queued-reqs or --max-num-queued-tokens; up to {waited:g} requests waited",
        "Under overload the queue grows without end: every request becomes too late, none is refused, and "
        "retries make it worse.",
        "--max-num-queued-reqs N" if new else "a limit on concurrent requests in the gateway in front of it",
    )


def adapters(seen: Evidence) -> Finding:
    """Whether LoRA series are there that mislead."""
    name = "lora-labels"
    if seen.last is None:
        return Finding(name, seen.url, "unknown", NO_METRICS)
    series = seen.last.of("vllm:lora_requests_info")
    if not series:
        return Finding(name, seen.url, "ok", "no vllm:lora_requests_info")
    return Finding(
        name,
        seen.url,
        "fault",
        f"vllm:lora_requests_info has {len(series)} series; their values are times, their labels lists of adapters",
        "The series carry no model, are never removed (one for each combination ever seen), and under several "
        "API servers their values are sums of times. Requests of adapters count under the base model's name.",
        "metric_relabel_configs that drop vllm:lora_requests_info; read the engine through exporters/engine",
    )


def several_processes(seen: Evidence) -> Finding:
    """Whether several API servers answer one /metrics."""
    name = "api-processes"
    if seen.last is None:
        return Finding(name, seen.url, "unknown", NO_METRICS)
    if "process_start_time_seconds" in seen.last:
        return Finding(name, seen.url, "ok", "process_* series are there: one API server answers")
    count = seen.flag("api-server-count")
    return Finding(
        name,
        seen.url,
        "fault",
        "no process_* series: several API servers share /metrics"
        + (f" (--api-server-count {count})" if count else ""),
        "vllm:iteration_tokens_total counts a step once for each server that saw its outputs, /load speaks of "
        "one server, lora_requests_info sums times, and a restart cannot be seen in process_start_time_seconds.",
        "--api-server-count 1, unless one server's CPU is the bottleneck",
    )


def readiness(seen: Evidence) -> Finding:
    """Whether /health agrees with what a request for one token sees."""
    name = "readiness"
    healthy, token = seen.health.get("/health") == 200, seen.token
    if token.status == 200 or not healthy:
        said = (
            f"/health {seen.health.get('/health')}; a token: HTTP {token.status} after {token.seconds:.2f} s"
        )
        return Finding(name, seen.url, "ok" if token.status == 200 else "unknown", said)
    return Finding(
        name,
        seen.url,
        "fault",
        f"/health answers 200, but a request for one token: {_answer(token.status, token.text)}",
        "/health does not look at the engine: it says 200 while the engine hangs or sleeps, so that the load "
        "balancer goes on sending requests that will fail.",
        "a readiness probe that asks for one token (exporters/canary), with a timeout",
    )


def _answer(status: int, text: str) -> str:
    return f"HTTP {status}" if status else f"no answer ({text[:120]})"


def one_version(all_seen: Iterable[Evidence]) -> Finding:
    """Whether all engines of the service run one version."""
    versions = {seen.url: seen.version or "unknown" for seen in all_seen}
    text = ", ".join(f"{url} {version}" for url, version in versions.items())
    if len(set(versions.values())) == 1:
        return Finding("versions", "all", "unknown" if "unknown" in versions.values() else "ok", text)
    return Finding(
        "versions",
        "all",
        "fault",
        text,
        "Metric names and bucket bounds change between versions: sums and quantiles over such engines are "
        "wrong unless every reader knows all spellings, and answers may differ too.",
        "finish the roll-out; until then read the engines through exporters/engine",
    )
