"""The lower bands of the GPU page: what each GPU does, what bounds it, its limits, and the host."""

from dashboards.common import RATE
from dashboards.gpu_common import (
    ENGINE_CORE,
    MEAN,
    SOURCE,
    SOURCE_GPM,
    SOURCE_HOST,
    by_gpu,
    core_busy,
    of_gpu,
    of_kind,
)
from dashboards.grids import rows_heatmap
from dashboards.layout import Band
from dashboards.panels import state_timeline, timeseries
from dashboards.steps import states
from dashboards.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, ModernPanel, query
from slo.names import node
from slo.spec import Spec


def work() -> Band:
    """GPU × time, twice: arithmetic and memory bandwidth."""
    return Band(
        8,
        [
            rows_heatmap(
                title,
                says,
                SOURCE_GPM,
                by_gpu(metric),
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


def bound() -> Band:
    """What bounds each GPU, and what nvidia-smi calls busy."""
    kinds = (
        (node.BOUND_IDLE, "idle", GREY),
        (node.BOUND_COMPUTE, "compute", SKY),
        (node.BOUND_MEMORY, "memory bandwidth", PURPLE),
        (node.BOUND_OTHER, "neither", ORANGE),
    )
    summed = " + ".join(f"{number} * {of_kind(kind)}" for number, (kind, _, _) in enumerate(kinds))
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
                    query(f"avg({of_gpu(node.GPU_UTILISATION_RATIO, MEAN)})", "utilisation"),
                    query(f"avg({of_gpu(node.GPU_SM_ACTIVE_RATIO, MEAN)})", "multiprocessors"),
                    query(f"avg({of_gpu(node.GPU_TENSOR_ACTIVE_RATIO, MEAN)})", "tensor pipes"),
                ],
                "percentunit",
                width=12,
                maximum=1,
                colours=(GREY, SKY, GREEN),
            ),
        ],
        "Compute, memory or host?",
    )


def limits() -> Band:
    """Memory, power, temperature and throttling."""
    used = f"sum by (instance, gpu) ({of_gpu(node.GPU_MEMORY_USED_BYTES, MEAN)})"
    throttled = f"avg by (reason) (rate({of_gpu(node.GPU_CLOCK_EVENT_SECONDS_TOTAL)}[{RATE}])) > 0"
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
                [query(by_gpu(node.GPU_POWER_WATTS), "GPU {{gpu}} {{instance}}")],
                "watt",
                width=6,
                many=True,
            ),
            timeseries(
                "Degrees left before slowdown",
                "How far each GPU is from the temperature at which it slows down.",
                SOURCE,
                [query(f"min by (instance, gpu) ({of_gpu(node.GPU_TEMPERATURE_MARGIN_CELSIUS)})", "GPU {{gpu}} {{instance}}")],
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


def host(spec: Spec) -> Band:
    """Whether engine cores and the host hold the GPUs up."""
    binding = spec.signal("cpu-binding").threshold
    wait = f"sum by (instance) (rate({node.ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL}{{{ENGINE_CORE}}}[{RATE}]))"
    return Band(
        8,
        [
            timeseries(
                "Engine core's CPU",
                "Share of one core that each engine core's main thread uses; near 1 it sets the pace.",
                SOURCE_HOST,
                [query(core_busy(), "{{instance}}")],
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
