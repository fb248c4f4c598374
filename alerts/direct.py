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
    """A canonical series and vLLM's names for it, newest first."""

    canonical: str
    stems: tuple[str, ...]
    aggregate: Literal["sum", "max"] = "sum"
    renamed: tuple[tuple[str, str], ...] = ()


def _counter(canonical: str, stem: str, renamed: tuple[tuple[str, str], ...] = ()) -> Mapping:
    """Older Ray versions export counters without `_total`."""
    return Mapping(canonical, (f"{stem}_total", stem), renamed=renamed)


def _gauge(canonical: str, *stems: str) -> Mapping:
    return Mapping(canonical, stems, aggregate="max")


COUNTERS = (
    _counter(engine.REQUESTS_TOTAL, "request_success", (("finished_reason", engine.LABEL_FINISH_REASON),)),
    _counter(engine.PROMPT_TOKENS_TOTAL, "prompt_tokens"),
    _counter(engine.GENERATION_TOKENS_TOTAL, "generation_tokens"),
    _counter(engine.PREFIX_CACHE_QUERIED_TOKENS_TOTAL, "prefix_cache_queries"),
    _counter(engine.PREFIX_CACHE_HIT_TOKENS_TOTAL, "prefix_cache_hits"),
    _counter(engine.PREEMPTIONS_TOTAL, "num_preemptions"),
)
GAUGES = (
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
_VLLM_LABELS = ("model_name", "engine", "ReplicaId")
CORE = ", ".join((labels.SERVICE, labels.INSTANCE, *_VLLM_LABELS))
"""What names an engine core in vLLM's own labels; under Ray several replicas share one page."""

SHOWN = ("num_requests_running", "generation_tokens_total", "generation_tokens")
"""A core that is read shows one of them: several processes no gauge before their first request, Ray no counter at 0."""


def spellings(stem: str, matchers: str = TARGETS) -> str:
    """Return the series of one of vLLM's names in every spelling; the router's copies are left out."""
    return "(" + " or ".join(f'{prefix}{stem}{{{matchers},server=""}}' for prefix in PREFIXES) + ")"


def _newest(stems: tuple[str, ...]) -> str:
    """The series of the first of these names that an engine core has."""
    return f"\nor on ({CORE}) ".join(map(spellings, stems))


def _merged(aggregate: str, vector: str, *drop: str) -> str:
    """One series an engine core, with the model and rank that its labels mean; process copies are merged."""
    gone = ", ".join((*NOISE, *_VLLM_LABELS, *drop))
    joined = f"({vector})\n* on ({CORE}) group_left (model, dp_rank) {records.DIRECT_ENGINE}"
    return promql(f"{aggregate} without ({gone}) (\n{joined}\n)")


def _record(mapping: Mapping) -> Record:
    vector = _newest(mapping.stems)
    for old, new in mapping.renamed:
        vector = f'label_replace({vector}, "{new}", "$1", "{old}", "(.+)")'
    return Record(mapping.canonical, _merged(mapping.aggregate, vector, *(old for old, _ in mapping.renamed)))


def _waiting_record() -> Record:
    """The total where there is one, else the sum of the reasons, never both."""
    parts = f"max without ({', '.join(NOISE)}) ({spellings('num_requests_waiting_by_reason')})"
    vector = f"{spellings('num_requests_waiting')}\nor on ({CORE}) sum without (reason) ({parts})"
    return Record(engine.REQUESTS_WAITING, _merged("max", vector))


def _cached_record() -> Record:
    """By source where the version says so, else as one source, never both."""
    total = f'label_replace({spellings("prompt_tokens_cached_total")}, "source", "unspecified", "", "")'
    vector = f"{spellings('prompt_tokens_cached_by_source_total')}\nor on ({CORE}) {total}"
    return Record(engine.PROMPT_TOKENS_CACHED_TOTAL, _merged("sum", vector))


def _sleeping_record() -> Record:
    awake = spellings("engine_sleep_state", TARGETS + ',sleep_state="awake"')
    return Record(engine.ENGINE_SLEEPING, _merged("min", f"1 - {awake}", "sleep_state"))


def _rejections_record() -> Record:
    """Counted for the server as a whole: there is no core to ask for the rank."""
    stem, gone = "admission_rejections", ", ".join((*NOISE, *_VLLM_LABELS))
    named = f'label_replace({_newest((f"{stem}_total", stem))}, "model", "$1", "model_name", "(.+)")'
    return Record(
        engine.ADMISSION_REJECTIONS_TOTAL, promql(f"sum without ({gone}) (\n{named}\n) and {DIRECT}")
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


def _engine_record() -> Record:
    """
    Each core that a page shows while its target answers, and the model and rank that its labels mean.

    Stated once for each core: to rename each of its 200 series instead costs as much again at every evaluation.
    """
    shown = " or ".join(map(spellings, SHOWN))
    read = f"({shown})\nand on (instance) (up{{{TARGETS}}} == 1 and {DIRECT})"
    core = f'label_replace(group by (job, {CORE}) (\n{read}\n), "model", "$1", "model_name", "(.+)")'
    # Before vLLM 0.8 there is no label `engine`; under Ray the rank is REPLICA/engine.
    core = f'label_replace({core}, "dp_rank", "0", "engine", "")'
    core = f'label_replace({core}, "dp_rank", "$1", "engine", "(.+)")'
    core = f'label_join({core}, "replica_rank", "/", "ReplicaId", "dp_rank")'
    core = f'label_replace({core}, "dp_rank", "$1", "replica_rank", "([^/].*)")'
    return Record(records.DIRECT_ENGINE, promql(f"group without (replica_rank) (\n{core}\n)"))


def _about_records() -> tuple[Record, ...]:
    """What runs there; absent, never 0, where it is not read. No page says its version or that it is simulated."""
    about = {engine.LABEL_ENGINE: "vllm", engine.LABEL_VERSION: "unknown"}
    return (
        Record(engine.ENGINE_UP, f"group without ({', '.join(_VLLM_LABELS)}) ({records.DIRECT_ENGINE})"),
        Record(
            engine.ENGINE_INFO,
            f"group without (dp_rank, {', '.join(_VLLM_LABELS)}) ({records.DIRECT_ENGINE})",
            about,
        ),
    )


def _probe_records() -> tuple[Record, ...]:
    """What a probe of ours would say, from the scrape's `up` and whether engine metrics came with it."""
    up = f"(up{{{TARGETS}}} and {DIRECT})"
    read = f"on (instance) {records.DIRECT_ENGINE}"
    return (
        _direct_target(),
        _engine_record(),
        *_about_records(),
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
    states = (
        *_probe_records(),
        *(_record(mapping) for mapping in GAUGES),
        _waiting_record(),
        _sleeping_record(),
    )
    counters = (
        *(_record(mapping) for mapping in COUNTERS),
        _cached_record(),
        _rejections_record(),
        _http_record(),
    )
    return (
        Group("direct-vllm-states", every, states),
        Group("direct-vllm-counters", every, counters),
        # A group each, as it is for what is recorded of them: 1,000 engines have some 20,000 buckets in one.
        *(_histogram_group(canonical, stems, every) for canonical, stems in HISTOGRAMS),
    )


def _histogram_group(canonical: str, stems: tuple[str, ...], every: int) -> Group:
    parts = (
        Mapping(canonical + part, tuple(stem + part for stem in stems))
        for part in ("_bucket", "_sum", "_count")
    )
    name = canonical.removeprefix("llm_").removesuffix("_seconds")
    return Group(f"direct-vllm-{name}", every, tuple(map(_record, parts)))
