"""Every family that the agent serves: its type and help, in the order of the exposition."""

from dataclasses import dataclass
from typing import Literal

from slo.names import node as names


@dataclass(frozen=True)
class Family:
    """What the HELP and TYPE lines say."""

    name: str
    kind: Literal["gauge", "counter"]
    help: str

    @property
    def header(self) -> str:
        """The two lines before the family's samples."""
        return f"# HELP {self.name} {self.help}\n# TYPE {self.name} {self.kind}\n"


_SAMPLED = "over what was sampled since this scraper's last scrape (stat: min, mean, max, last)."

_GAUGES = {
    names.NODE_INFO: "1; where readings come from and which driver answers.",
    names.NVML_STATE: "1 for the state that NVML is in, 0 for the others.",
    names.GPUS_EXPECTED: "GPUs that this node should have: as configured, else the most ever seen.",
    names.GPUS_HEALTHY: "GPUs that answer.",
    names.COLLECTOR_SUCCESS: "Whether the source's last reading worked.",
    names.COLLECTOR_DURATION_SECONDS: "How long the source's last reading took.",
    names.COLLECTOR_AGE_SECONDS: "Age of the source's last good reading.",
    names.SCRAPE_RENDER_SECONDS: "How long the scrape before this one took to render.",
    names.GPU_UP: "1 while the GPU answers; 0 once lost, with its last known identity.",
    names.GPU_INFO: "1; what kind of GPU it is.",
    names.GPU_UNSUPPORTED_READINGS: "Readings that this GPU or driver does not support; they have no series.",
    names.GPU_UTILISATION_RATIO: f"Share of time with a kernel running, {_SAMPLED}",
    names.GPU_MEMORY_UTILISATION_RATIO: f"Share of time in which memory was read or written, {_SAMPLED}",
    names.GPU_PERFORMANCE_STATE: "Performance state: 0 is the fastest.",
    names.GPU_NUMA_NODE: "NUMA node that the GPU hangs on.",
    names.GPU_MEMORY_TOTAL_BYTES: "Memory of the GPU.",
    names.GPU_MEMORY_USED_BYTES: f"Memory in use without what the driver reserves, {_SAMPLED}",
    names.GPU_MEMORY_FREE_BYTES: "Memory that can be allocated.",
    names.GPU_MEMORY_RESERVED_BYTES: "Memory that the driver keeps; nvidia-smi shows used plus reserved.",
    names.GPU_MEMORY_USED_INCLUDES_RESERVED: "1 where the driver cannot tell used and reserved apart.",
    names.GPU_MEMORY_UNIFIED: "1 where GPU and host share memory: total and used are then the host's.",
    names.GPU_MEMORY_SETTLED: "1 while the last readings in a row span less than the settled spread.",
    names.GPU_MEMORY_SETTLED_BYTES: "Memory in use when it last was settled.",
    names.GPU_BAR1_USED_BYTES: "BAR1 aperture in use.",
    names.GPU_BAR1_TOTAL_BYTES: "BAR1 aperture.",
    names.GPU_PROCESS_MEMORY_BYTES: "Memory of one process; absent where NVML does not tell. "
    "Context overhead is not a process's, so the sum is not the GPU's use.",
    names.GPU_PROCESSES: "Processes with a compute context.",
    names.GPU_PROCESSES_MEMORY_UNKNOWN: "Processes whose memory NVML does not tell.",
    names.GPU_POWER_WATTS: f"Power draw, {_SAMPLED}",
    names.GPU_POWER_LIMIT_WATTS: "Enforced power limit.",
    names.GPU_TEMPERATURE_CELSIUS: f"Temperature, {_SAMPLED}",
    names.GPU_TEMPERATURE_LIMIT_CELSIUS: "Temperatures at which the GPU reacts.",
    names.GPU_TEMPERATURE_MARGIN_CELSIUS: "Degrees left before the GPU slows down.",
    names.GPU_SM_CLOCK_HERTZ: f"SM clock, {_SAMPLED}",
    names.GPU_CLOCK_HERTZ: "Clocks.",
    names.GPU_CLOCK_MAX_HERTZ: "Highest clocks.",
    names.GPU_CLOCK_EVENT_RATIO: "Share of samples since this scraper's last scrape in which the clock was held.",
    names.GPU_PCIE_BYTES_PER_SECOND: "PCIe traffic; from GPM, else over NVML's window of 20 ms.",
    names.GPU_PCIE_LINK_GENERATION: "PCIe generation in use.",
    names.GPU_PCIE_LINK_GENERATION_MAX: "Highest PCIe generation.",
    names.GPU_PCIE_LINK_WIDTH: "PCIe lanes in use.",
    names.GPU_PCIE_LINK_WIDTH_MAX: "Most PCIe lanes.",
    names.GPU_NVLINK_BYTES_PER_SECOND: "NVLink traffic of all links, from GPM.",
    names.GPU_NVLINK_UP: "Whether the link is up.",
    names.GPU_ECC_ENABLED: "Whether ECC is on.",
    names.GPU_ROW_REMAP_PENDING: "1 when a reset would remap a row.",
    names.GPU_ROW_REMAP_FAILED: "1 when a row could not be remapped.",
    names.GPU_RECOVERY_ACTION: "What the driver asks for: 0 none, 1 reset, 2 reboot, 3 drain, 4 drain and reset.",
    names.GPU_XID_WATCHED: "GPUs whose XID events the driver reports to the agent.",
    names.GPU_MIG_ENABLED: "1 where MIG is on: utilisation then has no series, read the instances.",
    names.GPU_MIG_MEMORY_TOTAL_BYTES: "Memory of a MIG instance.",
    names.GPU_MIG_MEMORY_USED_BYTES: "Memory in use in a MIG instance.",
    names.GPU_MIG_SM_ACTIVE_RATIO: "Share of a MIG instance's SMs that were busy.",
    names.GPU_MIG_TENSOR_ACTIVE_RATIO: "Share of time a MIG instance's tensor cores worked.",
    names.GPU_MIG_DRAM_BANDWIDTH_RATIO: "Share of a MIG instance's memory bandwidth in use.",
    names.GPM_STATE: "1 for the state that GPM is in on this GPU, 0 for the others.",
    names.GPU_GRAPHICS_ACTIVE_RATIO: f"Share of time that any engine worked, {_SAMPLED}",
    names.GPU_SM_ACTIVE_RATIO: f"Share of SMs that were busy, {_SAMPLED}",
    names.GPU_SM_OCCUPANCY_RATIO: f"Share of warp slots in use, {_SAMPLED}",
    names.GPU_TENSOR_ACTIVE_RATIO: f"Share of time that tensor cores worked, {_SAMPLED}",
    names.GPU_PIPE_ACTIVE_RATIO: "Share of time that an arithmetic pipe worked, mean since the last scrape.",
    names.GPU_DRAM_BANDWIDTH_RATIO: f"Share of the memory bandwidth in use, {_SAMPLED}",
    names.GPU_BOUND: "1 for what binds the GPU since the last scrape: compute, memory, idle, other.",
    names.GPU_WORK_PER_BYTE_RATIO: "Busiest arithmetic pipe over memory bandwidth, each a share of its roof: "
    "1 is the ridge of the roofline.",
    names.ENGINE_GPU_INFO: "1; this engine instance and rank uses this GPU.",
    names.ENGINE_CORE_STATE: "1; the agent sees this engine core.",
    names.ENGINE_CORE_BOUND_CPUS: "CPUs that the engine core is bound to; 0: not bound.",
    names.ENGINE_CORE_NUMA_NODE: "NUMA node that the engine core last ran on.",
    names.ENGINE_CORE_RESIDENT_BYTES: "Resident memory of the engine core.",
    names.CGROUP_STATE: "1 for what this machine's cgroups are, 0 for the others; only v2 and hybrid are read.",
    names.CGROUP_MEMORY_BYTES: "Memory of the cgroup.",
    names.CGROUP_MEMORY_LIMIT_BYTES: "memory.max or memory.high; absent where there is no limit.",
    names.CGROUP_CPU_LIMIT_CORES: "cpu.max as cores; absent where there is no limit.",
    names.HOST_PRESSURE_READABLE: "Whether the kernel tells pressure (PSI).",
    names.HOST_CPUS: "CPUs online.",
    names.HOST_MEMORY_AVAILABLE_BYTES: "Memory that can be had without swapping.",
    names.HOST_MEMORY_TOTAL_BYTES: "Memory of the host.",
}

_COUNTERS = {
    names.DROPPED_READINGS_TOTAL: "Readings outside of what is possible, so not served.",
    names.SAMPLER_TICKS_TOTAL: "Rounds of the sampler.",
    names.SAMPLER_LATE_TOTAL: "Rounds that began a whole interval late or more.",
    names.SAMPLER_CPU_SECONDS_TOTAL: "CPU time of the sampler's thread.",
    names.GPU_READ_ERRORS_TOTAL: "Readings that failed other than by not being supported.",
    names.GPU_ENERGY_JOULES_TOTAL: "Energy since the driver was loaded.",
    names.GPU_CLOCK_EVENT_SECONDS_TOTAL: "Time the clock was held, by the driver's own count.",
    names.GPU_PCIE_REPLAYS_TOTAL: "PCIe replays.",
    names.GPU_PCIE_ERRORS_TOTAL: "PCIe errors.",
    names.GPU_NVLINK_BYTES_TOTAL: "NVLink traffic of all links.",
    names.GPU_NVLINK_ERRORS_TOTAL: "NVLink errors.",
    names.GPU_ECC_ERRORS_TOTAL: "ECC errors; volatile counts restart with the driver.",
    names.GPU_REMAPPED_ROWS_TOTAL: "Memory rows remapped.",
    names.GPU_RETIRED_PAGES_TOTAL: "Memory pages retired, on GPUs before Ampere.",
    names.GPU_XID_TOTAL: "XID events since the agent started, by class.",
    names.GPU_XID_CODE_TOTAL: "XID events since the agent started, by code.",
    names.ENGINE_CORE_BUSY_SECONDS_TOTAL: "CPU time of the engine core's main thread.",
    names.ENGINE_CORE_WALL_SECONDS_TOTAL: "Wall time over which that CPU time was measured.",
    names.ENGINE_CORE_ON_MASK_SECONDS_TOTAL: "CPU time of that thread on the CPUs it should run on.",
    names.ENGINE_CORE_BOUND_CPUS_BUSY_SECONDS_TOTAL: "Busy time of the CPUs it is bound to, whoever used them.",
    names.ENGINE_CORE_MIGRATIONS_TOTAL: "Moves to another CPU.",
    names.ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL: "Time that thread was runnable and waited for a CPU.",
    names.ENGINE_CORE_CONTEXT_SWITCHES_TOTAL: "Context switches of that thread.",
    names.ENGINE_THREAD_CPU_SECONDS_TOTAL: "CPU time of the engine core's threads, by thread name.",
    names.CGROUP_MEMORY_EVENTS_TOTAL: "memory.events of the cgroup.",
    names.CGROUP_CPU_SECONDS_TOTAL: "CPU time of the cgroup.",
    names.CGROUP_CPU_PERIODS_TOTAL: "CFS periods in which the cgroup was runnable.",
    names.CGROUP_CPU_THROTTLED_PERIODS_TOTAL: "CFS periods in which it ran out of quota.",
    names.CGROUP_CPU_THROTTLED_SECONDS_TOTAL: "Time its threads were held back by the quota.",
    names.CGROUP_PRESSURE_SECONDS_TOTAL: "Time in which some or all tasks of the cgroup waited for a resource.",
    names.HOST_PRESSURE_SECONDS_TOTAL: "Time in which some or all tasks of the host waited for a resource.",
    names.HOST_CPU_BUSY_SECONDS_TOTAL: "Busy time of all CPUs.",
}

FAMILIES: tuple[Family, ...] = (
    *(Family(name, "gauge", text) for name, text in _GAUGES.items()),
    *(Family(name, "counter", text) for name, text in _COUNTERS.items()),
)
