"""The Chip page: are a GPU's links, memory and clocks sound, and what do its pipes and partitions do?"""

from dashboards.common import RATE, alert_annotation
from dashboards.gpu_common import MEAN, SOURCE, SOURCE_GPM, of_gpu
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.steps import bad_above, states
from dashboards.style import GREEN, GREY, ORANGE, RED, Json, dashboard, query, variable
from slo.names import node
from slo.names.dashboards import CHIP_UID
from slo.spec import Spec

WHICH = "GPU {{gpu}} {{instance}}"
BY = "instance, gpu"
ACTIONS = {
    0: ("none", GREEN),
    1: ("reset", ORANGE),
    2: ("reboot", RED),
    3: ("drain", ORANGE),
    4: ("drain, reset", RED),
}


def build(spec: Spec) -> Json:
    """The page behind the GPU and host page, for the chip itself."""
    return dashboard(
        uid=CHIP_UID,
        title="Chip: are its links, memory and clocks sound?",
        description="PCIe and NVLink, memory faults and remapped rows, clocks and temperatures, pipes, partitions.",
        panels=lay_out([_answer(), _links(), _faults(), _clocks(), _pipes(spec)]),
        variables=[
            variable("node", "Node", f"label_values({node.NODE_INFO}, node)"),
            variable("agent", "Agent", f'label_values({node.NODE_INFO}{{node=~"$node"}}, instance)'),
            variable("gpu", "GPU", f'label_values({node.GPU_UP}{{instance=~"$agent"}}, gpu)'),
        ],
        annotations=[alert_annotation("")],
        tags=("gpu",),
    )


def _rate(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({of_gpu(metric, more)}[{RATE}]))"


def _answer() -> Band:
    narrow = f"min({of_gpu(node.GPU_PCIE_LINK_WIDTH)} / {of_gpu(node.GPU_PCIE_LINK_WIDTH_MAX)})"
    return Band(
        5,
        [
            stat(
                "What the driver asks for",
                "The action that the worst GPU's driver asks for.",
                SOURCE,
                [query(f"max({of_gpu(node.GPU_RECOVERY_ACTION)})")],
                "none",
                mappings=states(ACTIONS),
                width=5,
                spark=False,
                unit_words="an action by name",
                no_value="not told",
            ),
            stat(
                "PCIe lanes in use",
                "The narrowest link as a share of its lanes; less than all is a bad seat or riser.",
                SOURCE,
                [query(narrow)],
                "percentunit",
                steps=((None, RED), (1, GREEN)),
                width=5,
                decimals=0,
                no_value="no link seen",
            ),
            stat(
                "NVLinks down",
                "Links between GPUs that are down.",
                SOURCE,
                [
                    query(
                        f"count({of_gpu(node.GPU_NVLINK_UP)} == 0) or 0 * count({of_gpu(node.GPU_NVLINK_UP)})"
                    )
                ],
                "none",
                steps=bad_above(1, 1),
                width=4,
                unit_words="links",
                no_value="no NVLink",
            ),
            stat(
                "Rows remapped",
                "Memory rows that were replaced for good, in the worst GPU.",
                SOURCE,
                [query(f"max(sum by ({BY}) ({of_gpu(node.GPU_REMAPPED_ROWS_TOTAL)}))")],
                "none",
                steps=bad_above(1),
                width=5,
                decimals=0,
                unit_words="rows",
                no_value="not told",
            ),
            stat(
                "GPUs watched for XIDs",
                "GPUs whose faults the driver reports to the agent; of the others none would be seen.",
                SOURCE,
                [query(f'sum({node.GPU_XID_WATCHED}{{instance=~"$agent"}})')],
                "none",
                width=5,
                unit_words="GPUs",
            ),
        ],
    )


def _links() -> Band:
    return Band(
        8,
        [
            timeseries(
                "PCIe traffic",
                "Bytes per second over PCIe, by direction.",
                SOURCE_GPM,
                [query(f"sum by ({BY}, direction) ({of_gpu(node.GPU_PCIE_BYTES_PER_SECOND)})", WHICH + " {{direction}}")],
                "bytes",
                width=8,
                many=True,
                unit_words="bytes per second",
            ),
            timeseries(
                "NVLink traffic",
                "Bytes per second over all NVLinks, by direction.",
                SOURCE_GPM,
                [query(f"sum by ({BY}, direction) ({of_gpu(node.GPU_NVLINK_BYTES_PER_SECOND)})", WHICH + " {{direction}}")],
                "bytes",
                width=8,
                many=True,
                unit_words="bytes per second",
                no_value="no NVLink",
            ),
            timeseries(
                "Errors on links",
                "PCIe packets sent again and errors, and NVLink errors, by kind; nothing is shown while none happen.",
                SOURCE,
                [
                    query(f"{_rate(node.GPU_PCIE_REPLAYS_TOTAL, BY)} > 0", WHICH + " PCIe replays"),
                    query(f"{_rate(node.GPU_PCIE_ERRORS_TOTAL, BY + ', kind')} > 0", WHICH + " PCIe {{kind}}"),
                    query(f"{_rate(node.GPU_NVLINK_ERRORS_TOTAL, BY + ', kind')} > 0", WHICH + " NVLink {{kind}}"),
                ],
                "cps",
                width=8,
                many=True,
                no_value="none",
            ),
        ],
        "Links",
    )  # fmt: skip


def _faults() -> Band:
    counted = of_gpu(node.GPU_ECC_ERRORS_TOTAL, 'lifetime="volatile"')
    ecc = f"sum by ({BY}, severity) (increase({counted}[{RATE}])) > 0"
    failed = f'{node.GPU_READ_ERRORS_TOTAL}{{instance=~"$agent"}}'
    codes = f"sum by ({BY}, xid) (increase({of_gpu(node.GPU_XID_CODE_TOTAL)}[{RATE}])) > 0"
    return Band(
        7,
        [
            timeseries(
                "Memory errors",
                "ECC errors by severity, since the driver was loaded; corrected ones are harmless in small numbers.",
                SOURCE,
                [query(ecc, WHICH + " {{severity}}")],
                "none",
                width=8,
                many=True,
                unit_words="errors",
                no_value="none",
            ),
            timeseries(
                "Faults by XID",
                "Faults that the driver reported, by its number.",
                SOURCE,
                [query(codes, WHICH + " XID {{xid}}")],
                "none",
                width=8,
                many=True,
                unit_words="faults",
                no_value="none",
            ),
            timeseries(
                "Readings that failed or are unsupported",
                "Readings that the driver refused, by call, and those that this chip does not have.",
                SOURCE,
                [
                    query(f"sum by (instance, call) (rate({failed}[{RATE}])) > 0", "{{instance}} {{call}} failed a second"),
                    query(f"max by ({BY}) ({of_gpu(node.GPU_UNSUPPORTED_READINGS)})", WHICH + " unsupported"),
                ],
                "none",
                width=8,
                many=True,
                unit_words="readings",
            ),
        ],
        "Faults",
    )  # fmt: skip


def _clocks() -> Band:
    limit = f"min by (limit) ({of_gpu(node.GPU_TEMPERATURE_LIMIT_CELSIUS)})"
    return Band(
        8,
        [
            timeseries(
                "Clocks",
                "Each clock as a share of its highest; the cause of a low one stands on the node page.",
                SOURCE,
                [query(f"avg by ({BY}, clock) ({of_gpu(node.GPU_CLOCK_HERTZ)} / {of_gpu(node.GPU_CLOCK_MAX_HERTZ)})",
                       WHICH + " {{clock}}")],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
            ),
            timeseries(
                "Temperature",
                "Temperature of each GPU, and the limits at which it reacts.",
                SOURCE,
                [
                    query(f"max by ({BY}) ({of_gpu(node.GPU_TEMPERATURE_CELSIUS, MEAN)})", WHICH),
                    query(limit, "limit: {{limit}}"),
                ],
                "celsius",
                width=8,
                many=True,
            ),
            timeseries(
                "Power, from the energy counter",
                "Energy over time: what was really drawn, between samples too.",
                SOURCE,
                [query(_rate(node.GPU_ENERGY_JOULES_TOTAL, BY), WHICH, interval="1m")],
                "watt",
                width=8,
                many=True,
            ),
        ],
        "Clocks, heat, energy",
    )  # fmt: skip


def _pipes(spec: Spec) -> Band:
    idle = spec.node.bound.idle_below_ratio
    part = "mig_uuid, profile"
    return Band(
        8,
        [
            timeseries(
                "Pipes at work",
                f"Share of time that each arithmetic pipe worked; under {idle:.0%} it idles.",
                SOURCE_GPM,
                [query(f"avg by (pipe) ({of_gpu(node.GPU_PIPE_ACTIVE_RATIO)})", "{{pipe}}")],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
                no_value="no GPM on this chip",
            ),
            timeseries(
                "Occupancy and graphics engine",
                "Warps resident on multiprocessors as a share of what fits, and the share of time that anything ran.",
                SOURCE_GPM,
                [
                    query(f"avg({of_gpu(node.GPU_SM_OCCUPANCY_RATIO, MEAN)})", "occupancy"),
                    query(f"avg({of_gpu(node.GPU_GRAPHICS_ACTIVE_RATIO, MEAN)})", "anything ran"),
                    query(f"avg({of_gpu(node.GPU_MEMORY_UTILISATION_RATIO, MEAN)})", "memory was touched"),
                ],
                "percentunit",
                width=8,
                maximum=1,
                colours=(GREEN, GREY, ORANGE),
            ),
            timeseries(
                "Partitions (MIG)",
                "Share of each partition's multiprocessors that were busy, and of its memory that is in use.",
                SOURCE_GPM,
                [
                    query(
                        f"max by ({part}) ({of_gpu(node.GPU_MIG_SM_ACTIVE_RATIO)})",
                        "{{profile}} {{mig_uuid}} busy",
                    ),
                    query(
                        f"max by ({part}) ({of_gpu(node.GPU_MIG_MEMORY_USED_BYTES)} / "
                        f"on ({part}) {of_gpu(node.GPU_MIG_MEMORY_TOTAL_BYTES)})",
                        "{{profile}} {{mig_uuid}} memory",
                    ),
                ],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
                no_value="not partitioned",
            ),
        ],
        "Pipes and partitions",
    )
