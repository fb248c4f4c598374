"""Every dashboard, in the order a reader would open them."""

from collections.abc import Callable

from dashboards import (
    batching_page,
    chip_page,
    collector_page,
    drift_page,
    engine_page,
    exporters_page,
    gpu_page,
    kv_page,
    load_page,
    node_page,
    rag_page,
    slo_page,
    stack_page,
)
from dashboards.style import Json
from slo.names import drift, engine, load, node, rag, traces
from slo.names.dashboards import CHIP_UID, COLLECTOR_UID, DRIFT_UID, GPU_UID, LOAD_UID, NODE_UID, RAG_UID
from slo.spec import Spec

DASHBOARDS: tuple[Callable[[Spec], Json], ...] = (
    slo_page.build,
    engine_page.build,
    batching_page.build,
    kv_page.build,
    gpu_page.build,
    node_page.build,
    chip_page.build,
    rag_page.build,
    drift_page.build,
    load_page.build,
    stack_page.build,
    collector_page.build,
    exporters_page.build,
)

NEEDS = {
    GPU_UID: node.GPU_UP,
    NODE_UID: node.GPU_UP,
    CHIP_UID: node.GPU_UP,
    LOAD_UID: load.RUN_INFO,
    DRIFT_UID: drift.STREAMS,
    RAG_UID: rag.REQUESTS,
    COLLECTOR_UID: "otelcol_process_uptime",
}
"""uid -> a metric without which the page has nothing to show: no GPU, no load run, no embeddings, no RAG service, no collector."""

DIRECT = "where engines are scraped without our exporter"

MAY_BE_MISSING = {
    load.RUN_INFO: "while no load runs",
    node.GPU_PROCESS_MEMORY_BYTES: "while no process uses a GPU",
    node.CGROUP_MEMORY_BYTES: "without cgroup v2",
    node.CGROUP_MEMORY_LIMIT_BYTES: "without a memory limit",
    node.CGROUP_PRESSURE_SECONDS_TOTAL: "without cgroup v2",
    **dict.fromkeys(
        (
            engine.KV_CACHE_CAPACITY_TOKENS,
            engine.PROBE_DURATION_SECONDS,
            engine.PROBE_BODY_BYTES,
            engine.PROBE_SERIES,
            engine.PROBE_PARSE_ERRORS,
        ),
        DIRECT,
    ),
    engine.PROMPT_TOKENS_CACHED_TOTAL: "where the engine does not say where cached tokens came from",
    node.GPU_NVLINK_UP: "without NVLink",
    node.GPU_NVLINK_BYTES_PER_SECOND: "without NVLink, or without GPM",
    node.GPU_NVLINK_ERRORS_TOTAL: "without NVLink",
    node.GPU_MIG_SM_ACTIVE_RATIO: "without MIG",
    node.GPU_MIG_MEMORY_USED_BYTES: "without MIG",
    node.GPU_MIG_MEMORY_TOTAL_BYTES: "without MIG",
    node.GPU_READ_ERRORS_TOTAL: "while no reading fails",
    node.GPU_XID_CODE_TOTAL: "before the first fault",
    node.GPU_UNSUPPORTED_READINGS: "where the chip has every reading",
    node.GPU_RECOVERY_ACTION: "with drivers that do not tell",
    "otelcol_exporter_sent_spans": "before the first span is sent, or where traces go to a file",
    "otelcol_exporter_queue_size": "where traces go to a file",
    "otelcol_exporter_queue_capacity": "where traces go to a file",
    "otelcol_receiver_accepted_spans": "before the first span",
    "otelcol_processor_tail_sampling_global_count_traces_sampled": "before the first trace is judged",
    "otelcol_processor_tail_sampling_count_traces_sampled": "before the first trace is judged",
    drift.EVALUATION: "without the drift exporter, or before its first round",
    drift.MEMORY: "without the drift exporter",
    drift.DROPPED: "without the drift exporter",
    drift.UNAUTHORISED: "without the drift exporter",
    f"{drift.TAP_DURATION}_bucket": "without embeddings through the tap",
    traces.FIRING_MODELS: "without the watcher of firing models",
    traces.SPAN_MISSING: "while spans say everything",
    traces.SPAN_INVALID_TIME: "while clocks are right",
    traces.SPAN_TOKENS: "while no span tells of tokens",
    traces.LOG_ERRORS: "while no log record is an error",
    rag.BROKEN_TRACEPARENTS: "without a RAG service",
}
"""Metric -> when a healthy stack does not have it; a page that asks for it then is told, not faulted."""


def build_all(spec: Spec) -> dict[str, Json]:
    """uid -> dashboard.

    Raises ValueError when two dashboards share a uid.
    """
    built: dict[str, Json] = {}
    for build in DASHBOARDS:
        one = build(spec)
        if one["uid"] in built:
            raise ValueError(f"two dashboards have the uid {one['uid']!r}; give each its own in slo/names")
        built[one["uid"]] = one
    return built
