"""vLLM 0.6 to 0.33, alone, behind Ray Serve or in OpenMetrics spelling: its names to the canonical ones.

What changed between versions is in the tables: sources stand newest first and only the first one with
samples is used, since versions in between export old and new name with equal numbers.
"""

import re
from collections.abc import Iterator

from exporters.engine import families as f
from exporters.engine.adapter import Adapter, Draft, Metric, Samples, Source
from exporters.engine.exposition import LineError, parse_labels
from exporters.engine.labels import LabelReader, LabelRule, Labels
from slo.names import engine as names

_PLAIN = LabelRule("plain")
_FINISH = LabelRule("finish", ((b"finished_reason", names.LABEL_FINISH_REASON.encode()),), b"finished_reason")
_SOURCE = LabelRule("source", ((b"source", names.LABEL_SOURCE.encode()),), b"source")
_HTTP = LabelRule(
    "http",
    ((b"handler", names.LABEL_HANDLER.encode()), (b"status", names.LABEL_CODE.encode())),
    b"status",
    ranked=False,
)
_REJECTION = LabelRule("rejection", ((b"reason", names.LABEL_REASON.encode()),), b"reason", ranked=False)
_SLEEP = LabelRule("sleep", ((b"sleep_state", b"sleep_state"),), b"sleep_state")

_CACHE_INFO = "cache_config_info"
_LORA_INFO = "lora_requests_info"
_TOKENS_SINCE = (0, 9)  # V1 counted prefix-cache lookups in blocks before this version
_SUM_OF_TIMESTAMPS = 3e9  # later than any clock of ours: several processes' times added up
_DIGITS = 15  # more is no count of tokens or blocks
_ALL_SOURCES = b"unspecified"  # versions that count cached tokens without saying where they lay


def _counter(family: f.Family, *stems: str, rule: LabelRule = _PLAIN) -> Metric:
    """Sources of a counter: with `_total`, or bare as older Ray versions export it."""
    spelled = (Source(stem + ending, rule) for stem in stems for ending in ("_total", ""))
    return Metric(family, tuple(spelled))


def _same(family: f.Family, *stems: str) -> Metric:
    """Sources of a gauge or histogram with plain labels."""
    return Metric(family, tuple(Source(stem, _PLAIN) for stem in stems))


_METRICS = (
    _same(f.TTFT, "time_to_first_token_seconds"),
    # The old name always meant the gap between outputs; the per-request mean came later, under its own.
    _same(f.ITL, "inter_token_latency_seconds", "time_per_output_token_seconds"),
    _same(f.TPOT, "request_time_per_output_token_seconds"),
    _same(f.DURATION, "e2e_request_latency_seconds"),
    _same(f.QUEUE, "request_queue_time_seconds"),
    _same(f.PREFILL, "request_prefill_time_seconds"),
    _same(f.DECODE, "request_decode_time_seconds"),
    _counter(f.REQUESTS, "request_success", rule=_FINISH),
    Metric(f.HTTP, (Source("http_requests_total", _HTTP, prefixed=False),)),
    _counter(f.PROMPT_TOKENS, "prompt_tokens"),
    _counter(f.GENERATION_TOKENS, "generation_tokens"),
    Metric(
        f.CACHED_TOKENS,
        (
            Source("prompt_tokens_cached_by_source_total", _SOURCE),
            Source("prompt_tokens_cached_total", _PLAIN),
        ),
    ),
    _counter(f.PREFIX_QUERIED, "prefix_cache_queries", "gpu_prefix_cache_queries"),
    _counter(f.PREFIX_HIT, "prefix_cache_hits", "gpu_prefix_cache_hits"),
    _counter(f.PREEMPTIONS, "num_preemptions"),
    _counter(f.REJECTIONS, "admission_rejections", rule=_REJECTION),
    _same(f.RUNNING, "num_requests_running"),
    Metric(
        f.WAITING,
        (
            Source("num_requests_waiting", _PLAIN),
            Source("num_requests_waiting_by_reason", _PLAIN, add=True),
        ),
    ),
    _same(f.KV_USAGE, "kv_cache_usage_perc", "gpu_cache_usage_perc"),
    Metric(f.SLEEPING, (Source("engine_sleep_state", _SLEEP),)),
    _same(f.ITERATION, "iteration_tokens_total"),  # a histogram despite its name
    _same(f.REQUEST_PROMPT, "request_prompt_tokens"),
    _same(f.REQUEST_GENERATION, "request_generation_tokens"),
)


def _model(labels: Labels) -> bytes | None:
    return labels.get(b"model_name") or None


def _rank(labels: Labels) -> bytes:
    """`engine`, "0" before 0.8; under Ray several replicas share one page, so REPLICA/engine."""
    engine = labels.get(b"engine", b"0")
    replica = labels.get(b"ReplicaId")
    return replica + b"/" + engine if replica else engine


def _foreign(labels: Labels) -> bool:
    """The production-stack router re-exports engines' gauges under the same names, keyed by `server`."""
    return b"server" in labels and b"model_name" not in labels


def _derive(draft: Draft) -> None:
    _sleeping(draft)
    _capacity(draft)
    _cached_source(draft)
    _prefix_in_tokens(draft)
    _lora(draft)


def _sleeping(draft: Draft) -> None:
    """awake 1 or 0 to sleeping 0 or 1. A core at sleep level 0 has no state at 1: that is asleep too."""
    found = draft.chosen.pop(names.ENGINE_SLEEPING, None)
    if found is None:
        return
    sleeping: Samples = {}
    for labels, value in found[1][""].items():
        base, state, awake = labels.partition(b',sleep_state="awake"')
        if state:
            sleeping[base + awake] = b"0" if float(value) else b"1"
    if sleeping:
        draft.extra.append((f.SLEEPING, sleeping))


def _capacity(draft: Draft) -> None:
    """Older versions state blocks only, and with several ranks their sum: then no rank's share is known."""
    texts = draft.info[_CACHE_INFO]
    single = len({_info_rank(text) for text in texts}) == 1
    tokens: Samples = {}
    for text in texts:
        size = _info_number(text, b"kv_cache_size_tokens")
        if size is None and single:
            size = (_info_number(text, b"num_gpu_blocks") or 0) * (_info_number(text, b"block_size") or 0)
        if size:
            tokens[b'dp_rank="%b"} ' % _info_rank(text)] = b"%d" % size
    if tokens:
        draft.extra.append((f.KV_CAPACITY, tokens))


def _cached_source(draft: Draft) -> None:
    found = draft.chosen.get(names.PROMPT_TOKENS_CACHED_TOTAL)
    if found is not None and found[0] == "prompt_tokens_cached_total":
        ending = b',source="%b"} ' % _ALL_SOURCES
        found[1][""] = {labels[:-2] + ending: value for labels, value in found[1][""].items()}


def _prefix_in_tokens(draft: Draft) -> None:
    """Blocks (before 0.9) to tokens where version and block size are known; else leave the family out."""
    for name in (names.PREFIX_CACHE_QUERIED_TOKENS_TOTAL, names.PREFIX_CACHE_HIT_TOKENS_TOTAL):
        found = draft.chosen.get(name)
        if found is None or not found[0].startswith("gpu_"):
            continue
        version = re.match(r"(\d+)\.(\d+)", draft.version)
        if version and (int(version[1]), int(version[2])) >= _TOKENS_SINCE:
            continue
        sizes = {_info_number(text, b"block_size") for text in draft.info[_CACHE_INFO]}
        size = sizes.pop() if len(sizes) == 1 else None
        if version is None or not size:
            del draft.chosen[name]
        else:
            found[1][""] = {labels: b"%r" % (float(value) * size) for labels, value in found[1][""].items()}


def _lora(draft: Draft) -> None:
    """The newest of the combinations ever seen; its value is the time it was set, not a quantity."""
    newest = max(draft.info[_LORA_INFO].items(), key=lambda item: float(item[1]), default=None)
    if newest is None or float(newest[1]) > _SUM_OF_TIMESTAMPS:
        return
    try:
        labels = parse_labels(newest[0])
    except LineError:
        draft.parse_errors += 1
        return
    limit = labels.get(b"max_lora", b"0")
    if not limit.isdigit() or int(limit) == 0:
        return  # V0 publishes the family even where LoRA is off
    running = set(_adapters(labels, b"running_lora_adapters"))
    waiting = set(_adapters(labels, b"waiting_lora_adapters"))
    draft.extra += [
        (f.LORA_RUNNING, {b"} ": b"%d" % len(running)}),
        (f.LORA_WAITING, {b"} ": b"%d" % len(waiting)}),
        (f.LORA_LIMIT, {b"} ": limit}),
    ]
    states = [(name, b"running") for name in sorted(running)] + [
        (name, b"waiting") for name in sorted(waiting)
    ]
    if states:
        draft.extra.append((f.LORA_INFO, {b'adapter="%b",state="%b"} ' % pair: b"1" for pair in states}))


def _adapters(labels: Labels, name: bytes) -> Iterator[bytes]:
    return (adapter for adapter in labels.get(name, b"").split(b",") if adapter)


def _info_value(text: bytes, label: bytes) -> bytes | None:
    """The value of a label in the text of an info sample (some 40 labels: too many to parse each time)."""
    _, found, rest = (b"," + text).partition(b',%b="' % label)
    value = rest.partition(b'"')[0]
    return None if not found or b"\\" in value else value


def _info_number(text: bytes, label: bytes) -> int | None:
    value = _info_value(text, label)
    return int(value) if value is not None and value.isdigit() and len(value) <= _DIGITS else None


def _info_rank(text: bytes) -> bytes:
    labels = {label: value for label in (b"engine", b"ReplicaId") if (value := _info_value(text, label))}
    return _rank(labels)


ADAPTER = Adapter(
    name="vllm",
    prefixes=("vllm:", "vllm_", "ray_vllm_", "ray_vllm:"),
    metrics=_METRICS,
    infos=(_CACHE_INFO, _LORA_INFO),
    reader=LabelReader(_model, _rank, _foreign),
    derive=_derive,
    version_path="/version",
    versionless=("ray_vllm_", "ray_vllm:"),  # Ray's metrics agent is not the engine's server
)
