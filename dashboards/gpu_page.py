"""The GPU and host page: what are the GPUs doing, and do they wait for the host?"""

from grafanalib.core import Template

from dashboards.common import RATE, alert_annotation
from dashboards.layout import Band, lay_out
from dashboards.panels import bad_above, rows_heatmap, stat, state_timeline, states, timeseries
from dashboards.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    Json,
    ModernPanel,
    dashboard,
    query,
    variable,
)
from slo.names import node
from slo.names.dashboards import GPU_UID
from slo.spec import Spec

SOURCE = "exporters/node, from NVML"
SOURCE_GPM = "exporters/node, from NVML's GPM counters (Hopper and newer)"
SOURCE_HOST = "exporters/node, from /proc"
GPU = 'instance=~"$agent",gpu=~"$gpu"'
ENGINE_CORE = 'node=~"$node"'
MEAN = 'stat="mean"'


def build(spec: Spec) -> Json:
    """The GPU and host page; the CPU-binding threshold comes from *spec*."""
    return dashboard(
        uid=GPU_UID,
        title="GPU and host: what are the GPUs doing, and do they wait for the host?",
        description="GPU work as the chip counts it beside what nvidia-smi calls busy; memory, power, throttling; "
        "the engine core's CPU.",
        panels=lay_out([_answer(spec), _work(), _bound(), _limits(), _host(spec)]),
        variables=_variables(),
        annotations=[alert_annotation("")],
        tags=("gpu",),
    )


def _variables() -> list[Template]:
    return [
        variable("node", "Node", f"label_values({node.NODE_INFO}, node)"),
        variable("agent", "Agent", f'label_values({node.NODE_INFO}{{node=~"$node"}}, instance)'),
        variable("gpu", "GPU", f'label_values({node.GPU_UP}{{instance=~"$agent"}}, gpu)'),
    ]


def _gpu(metric: str, more: str = "") -> str:
    return f"{metric}{{{more + ',' if more else ''}{GPU}}}"


def _by_gpu(metric: str, more: str = MEAN) -> str:
    return f"avg by (instance, gpu) ({_gpu(metric, more)})"


def _kind(kind: str) -> str:
    chosen = _gpu(node.GPU_BOUND, f'kind="{kind}"')
    return f"max by (instance, gpu) ({chosen})"


def _core_busy() -> str:
    busy = f"sum by (instance) (rate({node.ENGINE_CORE_BUSY_SECONDS_TOTAL}{{{ENGINE_CORE}}}[{RATE}]))"
    wall = f"sum by (instance) (rate({node.ENGINE_CORE_WALL_SECONDS_TOTAL}{{{ENGINE_CORE}}}[{RATE}]))"
    return f"clamp_max({busy} / {wall}, 1)"


def _answer(spec: Spec) -> Band:
    used, total = _gpu(node.GPU_MEMORY_USED_BYTES, 'stat="last"'), _gpu(node.GPU_MEMORY_TOTAL_BYTES)
    binding = spec.signal("cpu-binding").threshold
    return Band(
        5,
        [
            stat(
                "GPUs lost",
                "GPUs that are expected and do not answer as healthy.",
                SOURCE,
                [
                    query(
                        f'sum({node.GPUS_EXPECTED}{{instance=~"$agent"}}) - sum({node.GPUS_HEALTHY}{{instance=~"$agent"}})'
                    )
                ],
                "none",
                steps=bad_above(1, 1),
                width=4,
                unit_words="GPUs",
            ),
            stat(
                "Multiprocessors busy",
                "Mean share of the GPUs' multiprocessors that do work; nvidia-smi's utilisation is not that.",
                SOURCE_GPM,
                [query(f"avg({_gpu(node.GPU_SM_ACTIVE_RATIO, MEAN)})")],
                "percentunit",
                width=5,
                decimals=0,
                no_value="no GPM on this chip",
            ),
            stat(
                "GPU memory in use",
                "The fullest GPU's share of memory in use, without what the driver reserves.",
                SOURCE,
                [query(f"max({used} / on (instance, gpu) {total})")],
                "percentunit",
                width=5,
                decimals=0,
            ),
            stat(
                "Power of the limit",
                "The GPU nearest to its power limit, as a share of it.",
                SOURCE,
                [
                    query(
                        f"max({_gpu(node.GPU_POWER_WATTS, MEAN)} / on (instance, gpu) {_gpu(node.GPU_POWER_LIMIT_WATTS)})"
                    )
                ],
                "percentunit",
                width=5,
                decimals=0,
            ),
            stat(
                "Engine core's CPU",
                f"The busiest engine core's main thread as a share of one core; over {binding:.0%} the GPU waits "
                "for it.",
                SOURCE_HOST,
                [query(f"max({_core_busy()})")],
                "percentunit",
                steps=bad_above(binding),
                width=5,
                decimals=0,
            ),
        ],
    )


def _work() -> Band:
    return Band(
        8,
        [
            rows_heatmap(
                title,
                says,
                SOURCE_GPM,
                _by_gpu(metric),
                "GPU {{gpu}} {{instance}}",
                width=12,
            )
            for title, says, metric in (
                (
                    "GPU × time: multiprocessors busy",
                    "Share of each GPU's multiprocessors that do work.",
                    node.GPU_SM_ACTIVE_RATIO,
                ),
                (
                    "GPU × time: memory bandwidth in use",
                    "Share of each GPU's memory bandwidth in use; decode lives on it.",
                    node.GPU_DRAM_BANDWIDTH_RATIO,
                ),
            )
        ],
        "What each GPU does",
    )


def _bound() -> Band:
    kinds = (
        (node.BOUND_IDLE, "idle", GREY),
        (node.BOUND_COMPUTE, "compute", SKY),
        (node.BOUND_MEMORY, "memory bandwidth", PURPLE),
        (node.BOUND_OTHER, "neither", ORANGE),
    )
    summed = " + ".join(f"{number} * {_kind(kind)}" for number, (kind, _, _) in enumerate(kinds))
    return Band(
        8,
        [
            state_timeline(
                "What bounds each GPU",
                "Whether a GPU is bound by arithmetic, by memory bandwidth, by neither (host, network, small "
                "batches), or idle.",
                SOURCE_GPM,
                [query(summed, "GPU {{gpu}} {{instance}}")],
                states({n: (text, colour) for n, (_, text, colour) in enumerate(kinds)}),
                width=12,
                unit_words="a state by name",
            ),
            timeseries(
                "Called busy, and busy",
                "nvidia-smi's utilisation (a kernel ran at all) beside the share of multiprocessors and of tensor "
                "pipes that worked.",
                f"{SOURCE}, and GPM",
                [
                    query(f"avg({_gpu(node.GPU_UTILISATION_RATIO, MEAN)})", "utilisation"),
                    query(f"avg({_gpu(node.GPU_SM_ACTIVE_RATIO, MEAN)})", "multiprocessors"),
                    query(f"avg({_gpu(node.GPU_TENSOR_ACTIVE_RATIO, MEAN)})", "tensor pipes"),
                ],
                "percentunit",
                width=12,
                maximum=1,
                colours=(GREY, SKY, GREEN),
            ),
        ],
        "Compute, memory or host?",
    )


def _limits() -> Band:
    used = f"sum by (instance, gpu) ({_gpu(node.GPU_MEMORY_USED_BYTES, MEAN)})"
    throttled = f"avg by (reason) (rate({_gpu(node.GPU_CLOCK_EVENT_SECONDS_TOTAL)}[{RATE}])) > 0"
    return Band(
        8,
        [
            timeseries(
                "GPU memory in use",
                "Memory in use by GPU, without what the driver reserves.",
                SOURCE,
                [query(used, "GPU {{gpu}} {{instance}}")],
                "bytes",
                width=6,
                many=True,
            ),
            timeseries(
                "Power",
                "Power drawn by GPU.",
                SOURCE,
                [query(_by_gpu(node.GPU_POWER_WATTS), "GPU {{gpu}} {{instance}}")],
                "watt",
                width=6,
                many=True,
            ),
            timeseries(
                "Degrees left before slowdown",
                "How far each GPU is from the temperature at which it slows down.",
                SOURCE,
                [query(f"min by (instance, gpu) ({_gpu(node.GPU_TEMPERATURE_MARGIN_CELSIUS)})", "GPU {{gpu}} {{instance}}")],
                "celsius",
                width=6,
                many=True,
            ),
            timeseries(
                "Time throttled, by reason",
                "Share of time in which a reason held clocks down; idle is no throttling and left out.",
                SOURCE,
                [query(throttled, "{{reason}}")],
                "percentunit",
                width=6,
                many=True,
                no_value="not throttled",
            ),
        ],
        "Limits of the chip",
    )  # fmt: skip


def _host(spec: Spec) -> Band:
    binding = spec.signal("cpu-binding").threshold
    wait = f"sum by (instance) (rate({node.ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL}{{{ENGINE_CORE}}}[{RATE}]))"
    return Band(
        8,
        [
            timeseries(
                "Engine core's CPU",
                "Share of one core that each engine core's main thread uses; near 1 it sets the pace.",
                SOURCE_HOST,
                [query(_core_busy(), "{{instance}}")],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
                limits=((binding, RED),),
            ),
            timeseries(
                "Engine core waits for a CPU",
                "Seconds per second in which each engine core was ready to run and had no CPU.",
                SOURCE_HOST,
                [query(f"clamp_max({wait}, 1)", "{{instance}}")],
                "percentunit",
                width=8,
                many=True,
            ),
            _pressure(),
        ],
        "Does the host hold them up?",
    )


def _pressure() -> ModernPanel:
    pressure = f'sum by (resource) (rate({node.HOST_PRESSURE_SECONDS_TOTAL}{{instance=~"$agent",share="some"}}[{RATE}]))'
    return timeseries(
        "Host pressure",
        "Share of time in which some task waited for CPU, memory or I/O.",
        f"{SOURCE_HOST} (pressure stall information)",
        [query(f"clamp_max({pressure}, 1)", "{{resource}}")],
        "percentunit",
        width=8,
        many=True,
        colours=(BLUE,),
    )
