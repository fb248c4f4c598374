"""The engine's own metrics: events of the simulation -> a private Prometheus registry."""

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from sim import families
from sim.config import EngineConfig
from sim.families import FAMILIES, RESIDENCY_FAMILIES, TOKEN_BOUNDS_KEY, Family
from sim.request import FinishReason, Request
from sim.scheduler import Step

ENGINE = "0"


class EngineMetrics:
    """All `vllm:*` families of one engine, observed when vLLM observes them.

    Token counters, first tokens and gaps are live; everything about a whole request is
    observed when it finishes, so an aborted one leaves only its first token behind.
    """

    def __init__(self, config: EngineConfig, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._model = config.model
        self._token_bounds = families.token_bounds(config.max_model_len)
        self.counters: dict[str, Counter] = {}
        self.gauges: dict[str, Gauge] = {}
        self.histograms: dict[str, Histogram] = {}
        extra = RESIDENCY_FAMILIES if config.kv_cache_metrics else ()
        for family in FAMILIES + extra:
            self._create(family)
        labels = families.cache_config_labels(
            block_size=config.block_size, num_blocks=config.num_blocks, max_model_len=config.max_model_len
        )
        info = Gauge(
            "vllm:cache_config_info", "The KV cache's configuration.", list(labels), registry=registry
        )
        info.labels(**labels).set(1)
        self._sleep_seconds: Histogram | None = None
        self._sleep_in_flight: Gauge | None = None
        self.sleep_state("awake")

    def published(self, running: int, waiting: int, usage_ratio: float) -> None:
        """Set the state gauges; only a finished step calls this, so a stuck engine freezes them."""
        self.gauges["num_requests_running"].set(running)
        self.gauges["num_requests_waiting"].set(waiting)
        self.gauges["num_requests_waiting_by_reason/capacity"].set(waiting)
        self.gauges["kv_cache_usage_perc"].set(usage_ratio)

    def admitted(self, step: Step) -> None:
        """Count prefix lookups of requests admitted for the first time, and preemptions."""
        for request in step.admitted:
            self.counters["prefix_cache_queries"].inc(request.prompt_length)
            self.counters["prefix_cache_hits"].inc(request.num_cached)
            self.counters["prompt_tokens_cached_by_source/device"].inc(request.num_cached)
        if step.preempted:
            self.counters["num_preemptions"].inc(len(step.preempted))

    def prefilled(self, request: Request) -> None:
        """Count a prompt whose last token was computed."""
        computed = request.prompt_length - request.num_cached
        self.counters["prompt_tokens"].inc(request.prompt_length)
        self.counters["prompt_tokens_by_source/local_compute"].inc(computed)
        self.counters["prompt_tokens_by_source/local_cache_hit"].inc(request.num_cached)
        self.counters["prompt_tokens_cached"].inc(request.num_cached)

    def generated(self, tokens: int, prefill_tokens: int) -> None:
        """Count one step's generated tokens and the computed prompt tokens it finished."""
        self.counters["generation_tokens"].inc(tokens)
        self.histograms["iteration_tokens_total"].observe(tokens + prefill_tokens)

    def finished(self, request: Request, reason: FinishReason, now: float) -> None:
        """Observe a whole request that the engine ended at monotonic time `now`."""
        made = request.num_generated
        self.counters[f"request_success/{reason.value}"].inc()
        observe = self._observe
        observe("request_prompt_tokens", request.prompt_length)
        observe("request_generation_tokens", made)
        observe("request_params_max_tokens", request.max_tokens)
        observe("request_num_preemptions", request.num_preemptions)
        observe("request_prefill_kv_computed_tokens", request.prompt_length - request.num_cached)
        # A request ended before a stage began spent no time in it, as vLLM counts it.
        arrived = request.arrived_at if request.arrived_at is not None else now
        queued = request.queued_at if request.queued_at is not None else now
        scheduled = request.scheduled_at if request.scheduled_at is not None else queued
        first = request.first_token_at if request.first_token_at is not None else scheduled
        last = request.last_token_at if request.last_token_at is not None else first
        observe("e2e_request_latency_seconds", now - arrived)
        observe("request_queue_time_seconds", scheduled - queued)
        observe("request_prefill_time_seconds", first - scheduled)
        observe("request_decode_time_seconds", last - first)
        observe("request_inference_time_seconds", last - scheduled)
        observe("request_time_per_output_token_seconds", (last - first) / (made - 1) if made > 1 else 0.0)

    def group_finished(self, n: int, longest_output_tokens: int) -> None:
        """Observe what is counted once for all choices of a request."""
        self._observe("request_params_n", n)
        self._observe("request_max_num_generation_tokens", longest_output_tokens)

    def first_token(self, seconds: float) -> None:
        """Observe arrival to first token."""
        self._observe("time_to_first_token_seconds", seconds)

    def token_gap(self, seconds: float) -> None:
        """Observe the time between two tokens of a request."""
        self._observe("inter_token_latency_seconds", seconds)

    def rejected(self, reason: str) -> None:
        """Count a request refused for a full queue."""
        self.counters[f"admission_rejections/{reason}"].inc()

    def evicted(self, lifetime: float, idle: float, gaps: list[float]) -> None:
        """Observe a cached block given up; times in seconds."""
        self._observe("kv_block_lifetime_seconds", lifetime)
        self._observe("kv_block_idle_before_evict_seconds", idle)
        for gap in gaps:
            self._observe("kv_block_reuse_gap_seconds", gap)

    def sleep_state(self, state: str) -> None:
        """Set which of the three sleep states the engine is in."""
        for name in ("awake", "weights_offloaded", "discard_all"):
            self.gauges[f"engine_sleep_state/{name}"].set(name == state)

    def sleep_operation(self, operation: str, seconds: float) -> None:
        """Observe a sleep or wake call; its two families exist only from the first call on."""
        if self._sleep_seconds is None or self._sleep_in_flight is None:
            self._sleep_seconds = Histogram(
                "vllm:sleep_mode_operation_duration_seconds", "Time of a sleep-mode call.", ["operation"],
                registry=self._registry, buckets=families.SLEEP_BOUNDS,
            )  # fmt: skip
            self._sleep_in_flight = Gauge(
                "vllm:sleep_mode_operations_in_flight", "Sleep-mode calls not yet answered.", ["operation"],
                registry=self._registry,
            )  # fmt: skip
        self._sleep_in_flight.labels(operation).set(0)
        self._sleep_seconds.labels(operation).observe(seconds)

    def _observe(self, key: str, value: float) -> None:
        self.histograms[key].observe(value)

    def _create(self, family: Family) -> None:
        labels: dict[str, str] = {"model_name": self._model}
        if family.name != "vllm:admission_rejections":  # the one family without an engine label
            labels["engine"] = ENGINE
        key = family.name.removeprefix("vllm:")
        parent = self._parent(family, [*labels, family.label] if family.label else [*labels])
        if not family.label:
            self._keep(key, parent, labels)
        for value in family.values:
            self._keep(f"{key}/{value}", parent, {**labels, family.label: value})

    def _parent(self, family: Family, labels: list[str]) -> Counter | Gauge | Histogram:
        if family.kind == "counter":
            return Counter(family.name, family.text, labels, registry=self._registry)
        if family.kind == "gauge":
            return Gauge(family.name, family.text, labels, registry=self._registry)
        bounds = self._token_bounds if family.bounds == TOKEN_BOUNDS_KEY else family.bounds
        return Histogram(
            family.name, family.text, labels, registry=self._registry, buckets=[float(b) for b in bounds]
        )

    def _keep(self, key: str, parent: Counter | Gauge | Histogram, labels: Mapping[str, str]) -> None:
        match parent:
            case Counter():
                self.counters[key] = parent.labels(**labels)
            case Gauge():
                self.gauges[key] = parent.labels(**labels)
            case Histogram():
                self.histograms[key] = parent.labels(**labels)
