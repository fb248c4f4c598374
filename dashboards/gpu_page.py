"""The GPU and host page: what are the GPUs doing, and do they wait for the host?"""

from grafanalib.core import Template

from dashboards.common import alert_annotation
from dashboards.gpu_bands import bound, host, limits, work
from dashboards.gpu_common import MEAN, SOURCE, SOURCE_GPM, SOURCE_HOST, core_busy, of_gpu
from dashboards.layout import Band, lay_out
from dashboards.panels import stat
from dashboards.steps import bad_above
from dashboards.style import Json, dashboard, query, variable
from slo.names import node
from slo.names.dashboards import GPU_UID
from slo.spec import Spec


def build(spec: Spec) -> Json:
    """The GPU and host page; the CPU-binding threshold comes from *spec*."""
    return dashboard(
        uid=GPU_UID,
        title="GPU and host: what are the GPUs doing, and do they wait for the host?",
        description="GPU work as the chip counts it beside what nvidia-smi calls busy; memory, power, throttling; "
        "the engine core's CPU.",
        panels=lay_out([_answer(spec), work(), bound(), limits(), host(spec)]),
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


def _answer(spec: Spec) -> Band:
    used, total = of_gpu(node.GPU_MEMORY_USED_BYTES, 'stat="last"'), of_gpu(node.GPU_MEMORY_TOTAL_BYTES)
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
                [query(f"avg({of_gpu(node.GPU_SM_ACTIVE_RATIO, MEAN)})")],
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
                        f"max({of_gpu(node.GPU_POWER_WATTS, MEAN)} / on (instance, gpu) {of_gpu(node.GPU_POWER_LIMIT_WATTS)})"
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
                [query(f"max({core_busy()})")],
                "percentunit",
                steps=bad_above(binding),
                width=5,
                decimals=0,
            ),
        ],
    )
