"""What the bands of the GPU page share: selectors from its variables, and where numbers come from."""

from dashboards.common import RATE
from slo.names import node

SOURCE = "exporters/node, from NVML"
SOURCE_GPM = "exporters/node, from NVML's GPM counters (Hopper and newer)"
SOURCE_HOST = "exporters/node, from /proc"
GPU = 'instance=~"$agent",gpu=~"$gpu"'
ENGINE_CORE = 'node=~"$node"'
MEAN = 'stat="mean"'


def of_gpu(metric: str, more: str = "") -> str:
    """`metric{…}` of the chosen GPUs, *more* matchers in front."""
    return f"{metric}{{{more + ',' if more else ''}{GPU}}}"


def by_gpu(metric: str, more: str = MEAN) -> str:
    """The mean of a metric by GPU."""
    return f"avg by (instance, gpu) ({of_gpu(metric, more)})"


def of_kind(kind: str) -> str:
    """1 while a GPU is bound by *kind*, by GPU."""
    chosen = of_gpu(node.GPU_BOUND, f'kind="{kind}"')
    return f"max by (instance, gpu) ({chosen})"


def core_busy() -> str:
    """Share of one core that each engine core's main thread uses."""
    busy = f"sum by (instance) (rate({node.ENGINE_CORE_BUSY_SECONDS_TOTAL}{{{ENGINE_CORE}}}[{RATE}]))"
    wall = f"sum by (instance) (rate({node.ENGINE_CORE_WALL_SECONDS_TOTAL}{{{ENGINE_CORE}}}[{RATE}]))"
    return f"clamp_max({busy} / {wall}, 1)"
