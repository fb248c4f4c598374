"""The named scenarios: a healthy configuration and parameters -> the configuration of a fault."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sim.config import SimConfig

Params = Mapping[str, float]


@dataclass(frozen=True)
class Param:
    """A number that a scenario can be given: its default, its range, what it means."""

    name: str
    default: float
    minimum: float
    maximum: float
    meaning: str


@dataclass(frozen=True)
class Scenario:
    """A named change to a healthy server. `apply` must only read its arguments."""

    name: str
    summary: str
    apply: Callable[[SimConfig, Params], SimConfig]
    params: tuple[Param, ...] = ()
    needs_load: bool = False

    def values(self, given: Mapping[str, object]) -> dict[str, float]:
        """Defaults overlaid with `given`, checked.

        Raises:
            ValueError: names the parameter, its value and what is allowed.
        """
        known = {param.name: param for param in self.params}
        values = {param.name: param.default for param in self.params}
        for name, value in given.items():
            if name not in known:
                allowed = ", ".join(known) or "none"
                raise ValueError(f"scenario {self.name} has no parameter {name!r}; it has: {allowed}")
            param = known[name]
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{self.name}.{name}={value!r}: give a number")
            if not param.minimum <= value <= param.maximum:
                raise ValueError(
                    f"{self.name}.{name}={value}: give a number from {param.minimum:g} to {param.maximum:g}"
                )
            values[name] = value
        return values


def _healthy(config: SimConfig, params: Params) -> SimConfig:
    return config


def _traffic_spike(config: SimConfig, params: Params) -> SimConfig:
    rate = config.load.requests_per_second * params["factor"]
    return replace(config, load=replace(config.load, requests_per_second=rate))


def _slow_decode(config: SimConfig, params: Params) -> SimConfig:
    engine, factor = config.engine, params["factor"]
    slower = replace(
        engine,
        decode_step_seconds=engine.decode_step_seconds * factor,
        decode_sequence_seconds=engine.decode_sequence_seconds * factor,
    )
    return replace(config, engine=slower)


def _slow_prefill(config: SimConfig, params: Params) -> SimConfig:
    chunk = int(params["chunk_tokens"])
    return replace(config, engine=replace(config.engine, long_prefill_token_threshold=chunk))


def _kv_thrash(config: SimConfig, params: Params) -> SimConfig:
    engine = replace(
        config.engine,
        usable_blocks=int(params["usable_blocks"]),
        long_prefill_token_threshold=int(params["chunk_tokens"]),
    )
    return replace(config, engine=engine)


def _cache_cold(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, engine=replace(config.engine, share_prefixes=False))


def _errors(config: SimConfig, params: Params) -> SimConfig:
    engine = replace(config.engine, error_share=params["share"], engine_error_share=params["in_engine_share"])
    return replace(config, engine=engine)


def _admission_reject(config: SimConfig, params: Params) -> SimConfig:
    engine = replace(
        config.engine,
        max_num_seqs=int(params["max_num_seqs"]),
        max_num_queued_reqs=int(params["max_num_queued_reqs"]),
    )
    return replace(config, engine=engine, load=replace(config.load, burst=int(params["burst"])))


def _hang(config: SimConfig, params: Params) -> SimConfig:
    engine = replace(config.engine, stepping=False, stops_with_work=bool(params["with_work"]))
    return replace(config, engine=engine)


def _asleep(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, engine=replace(config.engine, asleep=True))


def _restart(config: SimConfig, params: Params) -> SimConfig:
    fault = replace(
        config.fault,
        restarts=int(params["times"]),
        down_seconds=params["down_seconds"],
        up_seconds=params["up_seconds"],
    )
    return replace(config, fault=fault)


def _no_metrics(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, fault=replace(config.fault, metrics="python_only"))


def _counter_sawtooth(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, fault=replace(config.fault, metrics="two_workers"))


def _client_aborts(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, load=replace(config.load, abort_share=params["share"]))


def _down(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, fault=replace(config.fault, listening=False))


def _silent(config: SimConfig, params: Params) -> SimConfig:
    return replace(config, fault=replace(config.fault, silent=True))


SCENARIOS: tuple[Scenario, ...] = (
    Scenario("healthy", "Every promise kept.", _healthy),
    Scenario(
        "traffic_spike",
        "The built-in clients ask more often than the engine can answer: a queue, late first tokens.",
        _traffic_spike,
        (Param("factor", 6, 0, 100, "request rate, times the healthy one"),),
        needs_load=True,
    ),
    Scenario(
        "slow_decode",
        "Each decode step takes longer: slow tokens and answers, first tokens a little later.",
        _slow_decode,
        (Param("factor", 3, 1, 1000, "decode step time, times the healthy one"),),
    ),
    Scenario(
        "slow_prefill",
        "Few prompt tokens of a request fit in a step: late first tokens, normal ones after.",
        _slow_prefill,
        (Param("chunk_tokens", 5, 1, 4096, "prompt tokens of one request computed in a step"),),
    ),
    Scenario(
        "kv_thrash",
        "Little KV space is left: full cache, a queue, preempted requests computed again.",
        _kv_thrash,
        (
            Param("usable_blocks", 64, 1, 1_000_000, "KV blocks that can be lent"),
            Param("chunk_tokens", 32, 1, 4096, "prompt tokens of one request computed in a step"),
        ),
    ),
    Scenario("cache_cold", "No prompt finds its prefix in the cache.", _cache_cold),
    Scenario(
        "errors",
        "Requests fail: HTTP 500, or in the engine after their first tokens.",
        _errors,
        (
            Param("share", 1.0, 0, 1, "share of requests that fail"),
            Param("in_engine_share", 0.25, 0, 1, "share of the failures that happen in the engine"),
        ),
    ),
    Scenario(
        "admission_reject",
        "A small batch and a short queue: 503, and 503 inside a stream that began as 200.",
        _admission_reject,
        (
            Param("max_num_seqs", 4, 1, 4096, "running requests"),
            Param("max_num_queued_reqs", 2, 1, 4096, "waiting requests"),
            Param("burst", 4, 1, 64, "built-in clients that ask at the same instant"),
        ),
    ),
    Scenario(
        "hang",
        "The engine core stops stepping; the API and its probes go on.",
        _hang,
        (Param("with_work", 0, 0, 1, "1: after the next step that leaves a request running; 0: at once"),),
    ),
    Scenario("asleep", "The engine sleeps: running requests aborted, new ones wait for ever.", _asleep),
    Scenario(
        "restart",
        "The process ends and comes back with counters at 0; then healthy.",
        _restart,
        (
            Param("down_seconds", 5, 0, 3600, "time with a closed port"),
            Param("times", 1, 1, 1000, "restarts"),
            Param("up_seconds", 20, 0, 3600, "time between restarts"),
        ),
    ),
    Scenario("no_metrics", "/metrics answers 200 with nothing about the engine.", _no_metrics),
    Scenario(
        "counter_sawtooth",
        "/metrics is answered in turn by two workers with counters of their own.",
        _counter_sawtooth,
    ),
    Scenario(
        "client_aborts",
        "Built-in clients leave after the first tokens: counted as begun, never as finished.",
        _client_aborts,
        (Param("share", 0.5, 0, 1, "share of the built-in clients that leave"),),
        needs_load=True,
    ),
    Scenario("down", "The port is closed; the process and its counters live on.", _down),
    Scenario("silent", "Connections are accepted and no request is answered until it is over.", _silent),
)


def find(name: str) -> Scenario:
    """The scenario called `name`.

    Raises:
        ValueError: names the scenarios there are.
    """
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    names = ", ".join(scenario.name for scenario in SCENARIOS)
    raise ValueError(f"no scenario {name!r}; there are: {names}")
