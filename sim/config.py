"""What a simulated engine is: every number that shapes it, as frozen dataclasses."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class EngineConfig:
    """One engine core: batching limits, KV space and speed.

    The defaults keep a 12-token answer near 0.6 s and a first token near 0.1 s, up to about
    30 requests/s. Names follow vLLM's flags where vLLM has one.
    """

    model: str = "sim-llama"
    max_num_seqs: int = 24
    num_blocks: int = 2048
    block_size: int = 16
    max_model_len: int = 4096
    max_num_batched_tokens: int = 2048
    # 0 means no cap on how many prompt tokens of one request a step may compute.
    long_prefill_token_threshold: int = 0
    # None means an unlimited queue, as in vLLM.
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    prefill_tokens_per_second: float = 20_000.0
    decode_step_seconds: float = 0.045
    decode_sequence_seconds: float = 0.0005
    # Parsing, templating and tokenising before the engine core hears of a request.
    frontend_seconds: float = 0.002
    # Mean of the exponential length at which the model would stop by itself.
    natural_output_tokens: float = 64.0
    kv_cache_metrics: bool = False
    seed: int = 0
    # What scenarios move; None, True and 0 are the healthy values.
    usable_blocks: int | None = None
    share_prefixes: bool = True
    stepping: bool = True
    stops_with_work: bool = False
    asleep: bool = False
    error_share: float = 0.0
    engine_error_share: float = 0.0

    def __post_init__(self) -> None:
        """Reject numbers with which no request could ever be served.

        Raises:
            ValueError: names the flag, its value and the mend.
        """
        for name in ("max_num_seqs", "block_size", "max_model_len", "max_num_batched_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: give a whole number of at least 1")
        for name in ("prefill_tokens_per_second", "decode_step_seconds", "natural_output_tokens"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name}={getattr(self, name)}: give a number above 0")
        if self.num_blocks < 2:
            raise ValueError(f"num_blocks={self.num_blocks}: give at least 2 (one block is never lent)")

    @property
    def cache_tokens(self) -> int:
        """KV capacity in tokens, as `kv_cache_size_tokens` of `vllm:cache_config_info`."""
        return self.num_blocks * self.block_size


@dataclass(frozen=True)
class LoadConfig:
    """The built-in clients: how often they ask, and how many leave before the answer is whole."""

    requests_per_second: float = 0.0
    abort_share: float = 0.0
    # Arrivals come in groups of this size at the same mean rate.
    burst: int = 1
    max_in_flight: int = 96
    timeout_seconds: float = 30.0


@dataclass(frozen=True)
class FaultConfig:
    """What is wrong outside the engine core: its port, its metrics page, its process."""

    listening: bool = True
    # Connections are accepted and requests read, and none is answered, as by a process that is stopped.
    silent: bool = False
    # "full", "python_only" (200 without engine families) or "two_workers" (answers alternate
    # between two processes' private counters).
    metrics: str = "full"
    restarts: int = 0
    down_seconds: float = 0.0
    up_seconds: float = 0.0


@dataclass(frozen=True)
class SimConfig:
    """A whole simulated server: engine, load, faults, and where it listens."""

    engine: EngineConfig = field(default_factory=EngineConfig)
    load: LoadConfig = field(default_factory=LoadConfig)
    fault: FaultConfig = field(default_factory=FaultConfig)
    host: str = "127.0.0.1"
    port: int = 0
    control_port: int = 0
