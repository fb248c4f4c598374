"""The Node detail page: whose GPU memory it is, why clocks are low, where engine cores run, tenants' limits."""

from dashboards.common import RATE, alert_annotation
from dashboards.layout import Band, lay_out
from dashboards.panels import stat, timeseries
from dashboards.steps import bad_above
from dashboards.style import ORANGE, PURPLE, RED, SKY, Json, dashboard, query, variable
from slo.names import node
from slo.names import node_records as records
from slo.names.dashboards import NODE_UID
from slo.spec import Spec

SOURCE = "exporters/node, from NVML"
SOURCE_HOST = "exporters/node, from /proc"
SOURCE_CGROUP = "exporters/node, from cgroup v2"
GPU = 'instance=~"$agent",gpu=~"$gpu"'
ON_NODE = 'node=~"$node"'
_REASONS = 'reason!~"gpu_idle|applications_clocks_setting|display_clock_setting"'


def build(spec: Spec) -> Json:
    """The page behind the GPU and host page; the tenants' limit comes from *spec*."""
    return dashboard(
        uid=NODE_UID,
        title="Node detail: whose memory is it, and who holds whom back?",
        description="GPU memory by process, clocks and what holds them; where engine cores run and how often they move; "
        "containers and tenants at their limits.",
        panels=lay_out([_answer(spec), _memory_and_clocks(), _cores(), _tenants(), _host()]),
        variables=[
            variable("node", "Node", f"label_values({node.NODE_INFO}, node)"),
            variable("agent", "Agent", f'label_values({node.NODE_INFO}{{node=~"$node"}}, instance)'),
            variable("gpu", "GPU", f'label_values({node.GPU_UP}{{instance=~"$agent"}}, gpu)'),
        ],
        annotations=[alert_annotation("")],
        tags=("gpu",),
    )


def _answer(spec: Spec) -> Band:
    free, held = f"{node.GPU_MEMORY_FREE_BYTES}{{{GPU}}}", f"{node.GPU_CLOCK_EVENT_RATIO}{{{_REASONS},{GPU}}}"
    moves = _core_rate(node.ENGINE_CORE_MIGRATIONS_TOTAL, "instance")
    throttled = f"max({records.TENANT_THROTTLED}{{{ON_NODE}}})"
    return Band(
        5,
        [
            stat(
                "Least GPU memory free",
                "What the fullest GPU can still give.",
                SOURCE,
                [query(f"min({free})")],
                "bytes",
                width=6,
            ),
            stat(
                "Clocks held back",
                "The GPU whose clock is held most: share of the samples since the last scrape, idle left out.",
                SOURCE,
                [query(f"max({held})")],
                "percentunit",
                width=6,
                decimals=0,
            ),
            stat(
                "Engine core moves",
                "The engine core that the scheduler moves to another CPU most often.",
                SOURCE_HOST,
                [query(f"max({moves})")],
                "ops",
                width=6,
                unit_words="moves per second",
                no_value="no engine core seen",
            ),
            stat(
                "Most throttled tenant",
                "The container or tenant that used up its CPU quota in the largest share of its periods.",
                SOURCE_CGROUP,
                [query(throttled)],
                "percentunit",
                steps=bad_above(spec.node.alerts.cpu_throttled.above_ratio),
                width=6,
                decimals=0,
                no_value="no quota",
            ),
        ],
    )


def _memory_and_clocks() -> Band:
    process = f"sum by (instance, gpu, engine_instance, process) ({node.GPU_PROCESS_MEMORY_BYTES}{{{GPU}}})"
    reserved = f"sum by (instance, gpu) ({node.GPU_MEMORY_RESERVED_BYTES}{{{GPU}}})"
    settled = f"sum by (instance, gpu) ({node.GPU_MEMORY_SETTLED_BYTES}{{{GPU}}})"
    clock, top = (
        f'{node.GPU_SM_CLOCK_HERTZ}{{stat="mean",{GPU}}}',
        f'{node.GPU_CLOCK_MAX_HERTZ}{{clock="sm",{GPU}}}',
    )
    held = f"max by (instance, gpu, reason) ({node.GPU_CLOCK_EVENT_RATIO}{{{_REASONS},{GPU}}}) > 0"
    return Band(
        8,
        [
            timeseries(
                "GPU memory by process",
                "Memory that NVML tells of each process; context overhead belongs to none, so the sum is less than "
                "what is used.",
                SOURCE,
                [query(process, "{{process}} {{engine_instance}} GPU {{gpu}}")],
                "bytes",
                width=6,
                many=True,
            ),
            timeseries(
                "Memory reserved, and settled",
                "What the driver keeps for itself (nvidia-smi adds it to what is used), and memory in use when "
                "three readings in a row last agreed.",
                SOURCE,
                [query(reserved, "reserved GPU {{gpu}} {{instance}}"), query(settled, "settled GPU {{gpu}} {{instance}}")],
                "bytes",
                width=6,
                many=True,
            ),
            timeseries(
                "SM clock of its maximum",
                "How near each GPU runs to its highest clock; low while busy means that something holds it.",
                SOURCE,
                [query(f"avg by (instance, gpu) ({clock}) / avg by (instance, gpu) ({top})", "GPU {{gpu}} {{instance}}")],
                "percentunit",
                width=6,
                maximum=1,
                many=True,
            ),
            timeseries(
                "Clocks held, by reason",
                "Share of the samples since the last scrape in which a reason held the clock; idle and settings "
                "made by hand are left out.",
                SOURCE,
                [query(held, "{{reason}} GPU {{gpu}} {{instance}}")],
                "percentunit",
                width=6,
                maximum=1,
                many=True,
            ),
        ],
        "Whose memory, and why are clocks low?",
    )  # fmt: skip


def _core_rate(metric: str, by: str, more: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{{more}{ON_NODE}}}[{RATE}]))"


def _cores() -> Band:
    on_mask = _core_rate(node.ENGINE_CORE_ON_MASK_SECONDS_TOTAL, "instance")
    busy = _core_rate(node.ENGINE_CORE_BUSY_SECONDS_TOTAL, "instance")
    return Band(
        8,
        [
            timeseries(
                "CPU by thread of the engine core",
                "CPU seconds per second of the engine core's threads by name; the main thread runs the loop.",
                SOURCE_HOST,
                [query(f"topk(10, {_core_rate(node.ENGINE_THREAD_CPU_SECONDS_TOTAL, 'instance, thread')})", "{{thread}} {{instance}}")],
                "short",
                width=6,
                many=True,
                unit_words="cores",
            ),
            timeseries(
                "On the CPUs it should run on",
                "Share of the main thread's run time on its affinity mask, or on the CPUs that the agent's "
                "configuration names.",
                SOURCE_HOST,
                [query(f"clamp_max({on_mask} / ({busy} > 0), 1)", "{{instance}}")],
                "percentunit",
                width=6,
                maximum=1,
                many=True,
            ),
            timeseries(
                "Moves to another CPU",
                "How often the scheduler moved the main thread; each move costs it warm caches.",
                SOURCE_HOST,
                [query(_core_rate(node.ENGINE_CORE_MIGRATIONS_TOTAL, "instance"), "{{instance}}")],
                "ops",
                width=6,
                many=True,
                unit_words="moves per second",
            ),
            timeseries(
                "Context switches",
                "How often the main thread gave its CPU away (voluntary) or lost it (involuntary).",
                SOURCE_HOST,
                [query(_core_rate(node.ENGINE_CORE_CONTEXT_SWITCHES_TOTAL, "instance, kind"), "{{kind}} {{instance}}")],
                "ops",
                width=6,
                many=True,
                unit_words="switches per second",
            ),
        ],
        "Where do engine cores run?",
    )  # fmt: skip


def _tenants() -> Band:
    pressure = f'{node.CGROUP_PRESSURE_SECONDS_TOTAL}{{share="some",{ON_NODE}}}'
    limit = f'{node.CGROUP_MEMORY_LIMIT_BYTES}{{limit="max",{ON_NODE}}}'
    return Band(
        8,
        [
            timeseries(
                "Tenants out of CPU quota",
                "Share of the periods in which a container or tenant had used up its CPU quota.",
                SOURCE_CGROUP,
                [
                    query(
                        f"max by (tenant, node) ({records.TENANT_THROTTLED}{{{ON_NODE}}})",
                        "{{tenant}} {{node}}",
                    )
                ],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
                colours=(ORANGE, SKY, PURPLE, RED),
            ),
            timeseries(
                "Tenants' memory of their limit",
                "Memory of each container or tenant as a share of its limit; one without a limit has no line.",
                SOURCE_CGROUP,
                [
                    query(
                        f"max by (tenant, node) ({node.CGROUP_MEMORY_BYTES}{{{ON_NODE}}})"
                        f" / max by (tenant, node) ({limit})",
                        "{{tenant}} {{node}}",
                    )
                ],
                "percentunit",
                width=8,
                maximum=1,
                many=True,
            ),
            timeseries(
                "Tenants' pressure",
                "Share of time in which some task of a container or tenant waited for CPU, memory or I/O.",
                f"{SOURCE_CGROUP} (pressure stall information)",
                [
                    query(
                        f"clamp_max(max by (tenant, resource) (rate({pressure}[{RATE}])), 1)",
                        "{{tenant}} {{resource}}",
                    )
                ],
                "percentunit",
                width=8,
                many=True,
            ),
        ],
        "Do tenants hit their own limits?",
    )


def _host() -> Band:
    agent = 'instance=~"$agent"'
    busy = f"sum by (instance) (rate({node.HOST_CPU_BUSY_SECONDS_TOTAL}{{{agent}}}[{RATE}]))"
    cpus = f"max by (instance) ({node.HOST_CPUS}{{{agent}}})"
    free, total = (
        f"max by (instance) ({name}{{{agent}}})"
        for name in (node.HOST_MEMORY_AVAILABLE_BYTES, node.HOST_MEMORY_TOTAL_BYTES)
    )
    return Band(
        7,
        [
            timeseries(
                "Host CPU",
                "Share of all the host's CPUs that were busy, whoever used them.",
                SOURCE_HOST,
                [query(f"clamp_max({busy} / {cpus}, 1)", "{{instance}}")],
                "percentunit",
                width=12,
                maximum=1,
                many=True,
            ),
            timeseries(
                "Host memory available",
                "Share of the host's memory that could be had without swapping.",
                SOURCE_HOST,
                [query(f"{free} / {total}", "{{instance}}")],
                "percentunit",
                width=12,
                maximum=1,
                many=True,
            ),
        ],
        "The host",
    )
