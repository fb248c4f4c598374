"""vLLM scraped without our exporter, any version -> the canonical llm_* series, by recording rules.

Targets of job `vllm-direct` that carry a `service` label. Where the engine exporter reads the same
engine its series win, so that nothing is counted twice. Not mapped: prefix-cache counts of vLLM
before 0.9.2, which some versions give in blocks, and KV capacity.
"""

from dataclasses import dataclass
from typing import Literal

from alerts.promql import promql
from alerts.rule import Group, Record
from slo.names import engine, labels, records
from slo.spec import Spec

TARGETS = f'job="{labels.JOB_DIRECT}"'
DIRECT = f"on (instance) {records.DIRECT_TARGET}"
PREFIXES = ("vllm:", "vllm_", "ray_vllm_")
NOISE = (
    "pid",
    "Component",
    "NodeAddress",
    "SessionName",
    "Version",
    "WorkerId",
    "otel_scope_name",
    "otel_scope_version",
    "otel_scope_schema_url",
)
"""Labels that tell process copies apart, and what Ray adds."""


@dataclass(frozen=True)
class Mapping:
    """A canonical series and vLLM's names for it, newest first; `drop` are labels that are added up."""

    canonical: str
    stems: tuple[str, ...]
    aggregate: Literal["sum", "max"] = "sum"
    renamed: tuple[tuple[str, str], ...] = ()
    drop: tuple[str, ...] = ()


def _counter(canonical: str, stem: str, renamed: tuple[tuple[str, str], ...] = ()) -> Mapping:
    """Older Ray versions export counters without `_total`."""
    return Mapping(canonical, (f"{stem}_total", stem), renamed=renamed)


def _gauge(canonical: str, *stems: str, drop: tuple[str, ...] = ()) -> Mapping:
    return Mapping(canonical, stems, aggregate="max", drop=drop)


MAPPINGS = (
    _counter(engine.REQUESTS_TOTAL, "request_success", (("finished_reason", engine.LABEL_FINISH_REASON),)),
    _counter(engine.PROMPT_TOKENS_TOTAL, "prompt_tokens"),
    _counter(engine.GENERATION_TOKENS_TOTAL, "generation_tokens"),
    _counter(engine.PREFIX_CACHE_QUERIED_TOKENS_TOTAL, "prefix_cache_queries"),
    _counter(engine.PREFIX_CACHE_HIT_TOKENS_TOTAL, "prefix_cache_hits"),
    _counter(engine.PREEMPTIONS_TOTAL, "num_preemptions"),
    _counter(engine.ADMISSION_REJECTIONS_TOTAL, "admission_rejections"),
    _gauge(engine.REQUESTS_RUNNING, "num_requests_running"),
    _gauge(engine.KV_CACHE_USAGE_RATIO, "kv_cache_usage_perc", "gpu_cache_usage_perc"),
)
HISTOGRAMS = (
    (engine.TIME_TO_FIRST_TOKEN_SECONDS, ("time_to_first_token_seconds",)),
    (engine.INTER_TOKEN_LATENCY_SECONDS, ("inter_token_latency_seconds", "time_per_output_token_seconds")),
    (engine.TIME_PER_OUTPUT_TOKEN_SECONDS, ("request_time_per_output_token_seconds",)),
    (engine.REQUEST_DURATION_SECONDS, ("e2e_request_latency_seconds",)),
    (engine.REQUEST_QUEUE_SECONDS, ("request_queue_time_seconds",)),
    (engine.REQUEST_PREFILL_SECONDS, ("request_prefill_time_seconds",)),
    (engine.REQUEST_DECODE_SECONDS, ("request_decode_time_seconds",)),
    (engine.ITERATION_TOKENS, ("iteration_tokens_total",)),
    (engine.REQUEST_PROMPT_TOKENS, ("request_prompt_tokens",)),
    (engine.REQUEST_GENERATION_TOKENS, ("request_generation_tokens",)),
)
_RANKLESS = (engine.ADMISSION_REJECTIONS_TOTAL,)


def spellings(stem: str, matchers: str = TARGETS) -> str:
    """Return the series of one of vLLM's names in every spelling; the router's copies are left out."""
    return " or ".join(f'{prefix}{stem}{{{matchers},server=""}}' for prefix in PREFIXES)


def _merged(stems: tuple[str, ...], aggregate: str, drop: tuple[str, ...]) -> str:
    """One series an engine: copies are merged before an older name fills in for a newer one."""
    noise = ", ".join((*NOISE, *drop))
    return "\nor ".join(f"{aggregate} without ({noise}) ({spellings(stem)})" for stem in stems)


def _relabelled(vector: str, renamed: tuple[tuple[str, str], ...], ranked: bool) -> str:
    """`model_name` to `model`, `engine` (under Ray REPLICA/engine, before 0.8 none) to `dp_rank`."""
    text = f'label_replace({vector}, "model", "$1", "model_name", "(.+)")'
    if ranked:
        text = f'label_replace({text}, "dp_rank", "0", "engine", "")'
        text = f'label_replace({text}, "dp_rank", "$1", "engine", "(.+)")'
        joined = f'label_join({text}, "replica_rank", "/", "ReplicaId", "dp_rank")'
        text = f'label_replace({joined}, "dp_rank", "$1", "replica_rank", "([^/].*)")'
    for old, new in renamed:
        text = f'label_replace({text}, "{new}", "$1", "{old}", "(.+)")'
    return text


def _record(mapping: Mapping) -> Record:
    merged = _merged(mapping.stems, mapping.aggregate, mapping.drop)
    ranked = mapping.canonical not in _RANKLESS
    gone = ["model_name", "engine", "ReplicaId", "replica_rank", *(old for old, _ in mapping.renamed)]
    return Record(
        mapping.canonical,
        promql(f"""
            {mapping.aggregate} without ({", ".join(gone)}) (
            {_relabelled(f"({merged})", mapping.renamed, ranked)}
            ) and {DIRECT}
        """),
    )


def _waiting() -> Mapping:
    return Mapping(engine.REQUESTS_WAITING, ("num_requests_waiting",), aggregate="max")


def _waiting_record() -> Record:
    """The total where there is one, else the sum of the reasons, never both."""
    total = _merged(("num_requests_waiting",), "max", ())
    parts = f"sum without (reason) ({_merged(('num_requests_waiting_by_reason',), 'max', ())})"
    gone = "model_name, engine, ReplicaId, replica_rank"
    return Record(
        engine.REQUESTS_WAITING,
        promql(f"max without ({gone}) (\n{_relabelled(f'({total} or {parts})', (), True)}\n) and {DIRECT}"),
    )


def _sleeping_record() -> Record:
    awake = spellings("engine_sleep_state", TARGETS + ',sleep_state="awake"')
    noise = ", ".join((*NOISE, "sleep_state"))
    gone = "model_name, engine, ReplicaId, replica_rank"
    vector = f"(1 - max without ({noise}) ({awake}))"
    return Record(
        engine.ENGINE_SLEEPING,
        promql(f"max without ({gone}) (\n{_relabelled(vector, (), True)}\n) and {DIRECT}"),
    )


def _http_record() -> Record:
    answers = f"sum without (method) (http_requests_total{{{TARGETS}}})"
    renamed = f'label_replace({answers}, "{engine.LABEL_CODE}", "$1", "status", "(.+)")'
    return Record(engine.HTTP_REQUESTS_TOTAL, promql(f"sum without (status) (\n{renamed}\n) and {DIRECT}"))


def _addressed(vector: str) -> str:
    """An engine's address, however its instance is written: our exporter has a URL there, a scrape HOST:PORT."""
    return f'label_replace({vector}, "address", "$1", "instance", "(?:https?://)?([^/]+).*")'


def _direct_target() -> Record:
    """Each target of ours that the engine exporter does not read as well."""
    targets = _addressed(f"up{{{TARGETS}}}")
    ours = _addressed(f'{engine.PROBE_SUCCESS}{{job="{labels.JOB_ENGINE}"}}')
    return Record(records.DIRECT_TARGET, f"group without (address) ({targets} unless on (address) {ours})")


def _probe_records() -> tuple[Record, ...]:
    """What a probe of ours would say, from the scrape's `up` and whether engine metrics came with it."""
    up = f"(up{{{TARGETS}}} and {DIRECT})"
    read = f"on (instance) ({spellings('num_requests_running')})"
    return (
        _direct_target(),
        Record(engine.PROBE_SUCCESS, f"({up} and {read})\nor ({up} * 0)"),
        Record(
            engine.PROBE_FAILURE,
            f"({up} == bool 0)",
            {engine.LABEL_REASON: labels.DIRECT_REASON_NO_ANSWER},
        ),
        Record(
            engine.PROBE_FAILURE,
            f"({up} == 1 unless {read})\nor ({up} * 0)",
            {engine.LABEL_REASON: engine.REASON_NO_ENGINE_METRICS},
        ),
    )


def direct_groups(spec: Spec) -> tuple[Group, ...]:
    """Return the groups that stand in for the engine exporter."""
    every = spec.intervals.evaluation_seconds
    histograms = tuple(
        _record(Mapping(canonical + part, tuple(stem + part for stem in stems)))
        for canonical, stems in HISTOGRAMS
        for part in ("_bucket", "_sum", "_count")
    )
    states = (*_probe_records(), *(_record(m) for m in MAPPINGS), _waiting_record(), _sleeping_record())
    return (
        Group("direct-vllm-states", every, (*states, _http_record())),
        Group("direct-vllm-latency", every, histograms),
    )
