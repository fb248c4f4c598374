"""Every metric, label and state that the node agent publishes, stated once.

Sampled gauges carry `stat` (min, mean, max, last: over what was sampled since the scraper's last
scrape). Counters are cumulative: use rate() or increase(). All units are base units.
"""

from typing import Final

# Labels. Every GPU series carries the first four; dcgm-exporter spells the first UUID.
LABEL_UUID: Final = "uuid"
LABEL_GPU: Final = "gpu"  # NVML's index: the order may change at reboot, join on uuid
LABEL_GPU_MODEL: Final = "gpu_model"
LABEL_PCI_BUS_ID: Final = "pci_bus_id"
GPU_LABELS: Final = (LABEL_UUID, LABEL_GPU, LABEL_GPU_MODEL, LABEL_PCI_BUS_ID)
LABEL_STAT: Final = "stat"
LABEL_STATE: Final = "state"
LABEL_KIND: Final = "kind"
LABEL_REASON: Final = "reason"
LABEL_NODE: Final = "node"
LABEL_INSTANCE: Final = "instance"  # the engine's, so the scrape job of the agent sets honor_labels: true
LABEL_DP_RANK: Final = "dp_rank"
LABEL_TENANT: Final = "tenant"
LABEL_CGROUP: Final = "cgroup"
STATS: Final = ("min", "mean", "max", "last")

# The agent and what it can see.
NODE_INFO: Final = "llm_node_info"  # node, source ("nvml" or "recording"), driver_version, nvml_version
NVML_STATE: Final = "llm_node_nvml_state"  # state: one of NVML_STATES; 1 for the one that holds
GPUS_EXPECTED: Final = "llm_node_gpus_expected"
GPUS_HEALTHY: Final = "llm_node_gpus_healthy"
COLLECTOR_SUCCESS: Final = "llm_node_collector_success"  # collector
COLLECTOR_DURATION_SECONDS: Final = "llm_node_collector_duration_seconds"  # collector
COLLECTOR_AGE_SECONDS: Final = "llm_node_collector_age_seconds"  # collector
DROPPED_READINGS_TOTAL: Final = "llm_node_dropped_readings_total"  # quantity
SAMPLER_TICKS_TOTAL: Final = "llm_node_sampler_ticks_total"
SAMPLER_LATE_TOTAL: Final = "llm_node_sampler_late_ticks_total"
SAMPLER_CPU_SECONDS_TOTAL: Final = "llm_node_sampler_cpu_seconds_total"
SCRAPE_RENDER_SECONDS: Final = "llm_node_scrape_render_seconds"

STATE_OK: Final = "ok"
STATE_NO_BINDINGS: Final = "no_bindings"  # the Python package nvidia-ml-py is not installed
STATE_NO_LIBRARY: Final = "no_library"  # libnvidia-ml.so.1 is not there: no driver, or not passed in
STATE_DRIVER_NOT_LOADED: Final = "driver_not_loaded"
STATE_DRIVER_MISMATCH: Final = "driver_mismatch"  # upgraded under a running kernel module
STATE_NO_PERMISSION: Final = "no_permission"
STATE_NO_DEVICES: Final = "no_devices"  # a container without devices
STATE_LOST: Final = "lost"  # a GPU fell off the bus or one that was seen is missing
STATE_ERROR: Final = "error"
NVML_STATES: Final = (
    STATE_OK,
    STATE_NO_BINDINGS,
    STATE_NO_LIBRARY,
    STATE_DRIVER_NOT_LOADED,
    STATE_DRIVER_MISMATCH,
    STATE_NO_PERMISSION,
    STATE_NO_DEVICES,
    STATE_LOST,
    STATE_ERROR,
)

# A GPU.
GPU_UP: Final = "llm_gpu_up"  # 0 while lost, with the last known identity
GPU_INFO: Final = "llm_gpu_info"  # + architecture, compute_capability
GPU_READ_ERRORS_TOTAL: Final = "llm_gpu_read_errors_total"  # + call, error
GPU_UNSUPPORTED_READINGS: Final = "llm_gpu_unsupported_readings"
GPU_UTILISATION_RATIO: Final = "llm_gpu_utilisation_ratio"  # + stat
GPU_MEMORY_UTILISATION_RATIO: Final = "llm_gpu_memory_utilisation_ratio"  # + stat; time, not bytes
GPU_PERFORMANCE_STATE: Final = "llm_gpu_performance_state"
GPU_NUMA_NODE: Final = "llm_gpu_numa_node"

GPU_MEMORY_TOTAL_BYTES: Final = "llm_gpu_memory_total_bytes"
GPU_MEMORY_USED_BYTES: Final = "llm_gpu_memory_used_bytes"  # + stat
GPU_MEMORY_FREE_BYTES: Final = "llm_gpu_memory_free_bytes"
GPU_MEMORY_RESERVED_BYTES: Final = "llm_gpu_memory_reserved_bytes"
GPU_MEMORY_USED_INCLUDES_RESERVED: Final = "llm_gpu_memory_used_includes_reserved"
GPU_MEMORY_UNIFIED: Final = "llm_gpu_memory_unified"
GPU_MEMORY_SETTLED: Final = "llm_gpu_memory_settled"
GPU_MEMORY_SETTLED_BYTES: Final = "llm_gpu_memory_settled_bytes"
GPU_BAR1_USED_BYTES: Final = "llm_gpu_bar1_used_bytes"
GPU_BAR1_TOTAL_BYTES: Final = "llm_gpu_bar1_total_bytes"
GPU_PROCESS_MEMORY_BYTES: Final = "llm_gpu_process_memory_bytes"  # + pid, process, engine_instance, model
GPU_PROCESSES: Final = "llm_gpu_processes"
GPU_PROCESSES_MEMORY_UNKNOWN: Final = "llm_gpu_processes_memory_unknown"

GPU_POWER_WATTS: Final = "llm_gpu_power_watts"  # + stat
GPU_POWER_LIMIT_WATTS: Final = "llm_gpu_power_limit_watts"
GPU_ENERGY_JOULES_TOTAL: Final = "llm_gpu_energy_joules_total"
GPU_TEMPERATURE_CELSIUS: Final = "llm_gpu_temperature_celsius"  # + sensor, stat
GPU_TEMPERATURE_LIMIT_CELSIUS: Final = "llm_gpu_temperature_limit_celsius"  # + limit
GPU_TEMPERATURE_MARGIN_CELSIUS: Final = "llm_gpu_temperature_margin_celsius"  # to slowdown
GPU_SM_CLOCK_HERTZ: Final = "llm_gpu_sm_clock_hertz"  # + stat
GPU_CLOCK_HERTZ: Final = "llm_gpu_clock_hertz"  # + clock
GPU_CLOCK_MAX_HERTZ: Final = "llm_gpu_clock_max_hertz"  # + clock
GPU_CLOCK_EVENT_RATIO: Final = "llm_gpu_clock_event_ratio"  # + reason; share of samples
GPU_CLOCK_EVENT_SECONDS_TOTAL: Final = "llm_gpu_clock_event_seconds_total"  # + reason

GPU_PCIE_BYTES_PER_SECOND: Final = "llm_gpu_pcie_bytes_per_second"  # + direction
GPU_PCIE_REPLAYS_TOTAL: Final = "llm_gpu_pcie_replays_total"
GPU_PCIE_ERRORS_TOTAL: Final = "llm_gpu_pcie_errors_total"  # + kind
GPU_PCIE_LINK_GENERATION: Final = "llm_gpu_pcie_link_generation"
GPU_PCIE_LINK_GENERATION_MAX: Final = "llm_gpu_pcie_link_generation_max"
GPU_PCIE_LINK_WIDTH: Final = "llm_gpu_pcie_link_width"
GPU_PCIE_LINK_WIDTH_MAX: Final = "llm_gpu_pcie_link_width_max"
GPU_NVLINK_BYTES_TOTAL: Final = "llm_gpu_nvlink_bytes_total"  # + direction
GPU_NVLINK_BYTES_PER_SECOND: Final = "llm_gpu_nvlink_bytes_per_second"  # + direction; from GPM
GPU_NVLINK_ERRORS_TOTAL: Final = "llm_gpu_nvlink_errors_total"  # + link, kind
GPU_NVLINK_UP: Final = "llm_gpu_nvlink_up"  # + link

GPU_ECC_ENABLED: Final = "llm_gpu_ecc_enabled"
GPU_ECC_ERRORS_TOTAL: Final = "llm_gpu_ecc_errors_total"  # + severity, lifetime
GPU_REMAPPED_ROWS_TOTAL: Final = "llm_gpu_remapped_rows_total"  # + severity
GPU_ROW_REMAP_PENDING: Final = "llm_gpu_row_remap_pending"
GPU_ROW_REMAP_FAILED: Final = "llm_gpu_row_remap_failed"
GPU_RETIRED_PAGES_TOTAL: Final = "llm_gpu_retired_pages_total"  # + cause; before Ampere
GPU_RECOVERY_ACTION: Final = "llm_gpu_recovery_action"
GPU_XID_TOTAL: Final = "llm_gpu_xid_total"  # + class; every class starts at 0
GPU_XID_CODE_TOTAL: Final = "llm_gpu_xid_code_total"  # + class, xid
GPU_XID_WATCHED: Final = "llm_gpu_xid_watched"

GPU_MIG_ENABLED: Final = "llm_gpu_mig_enabled"
GPU_MIG_MEMORY_TOTAL_BYTES: Final = "llm_gpu_mig_memory_total_bytes"  # + mig_uuid, profile, gpu_instance
GPU_MIG_MEMORY_USED_BYTES: Final = "llm_gpu_mig_memory_used_bytes"
GPU_MIG_SM_ACTIVE_RATIO: Final = "llm_gpu_mig_sm_active_ratio"
GPU_MIG_TENSOR_ACTIVE_RATIO: Final = "llm_gpu_mig_tensor_active_ratio"
GPU_MIG_DRAM_BANDWIDTH_RATIO: Final = "llm_gpu_mig_dram_bandwidth_ratio"

# GPM (Hopper and newer): ratios of the chip's own peak. + stat
GPM_STATE: Final = "llm_gpu_gpm_state"  # state: one of GPM_STATES
GPM_STATES: Final = ("supported", "unsupported", "in_use", "error")
GPU_GRAPHICS_ACTIVE_RATIO: Final = "llm_gpu_graphics_active_ratio"
GPU_SM_ACTIVE_RATIO: Final = "llm_gpu_sm_active_ratio"
GPU_SM_OCCUPANCY_RATIO: Final = "llm_gpu_sm_occupancy_ratio"
GPU_TENSOR_ACTIVE_RATIO: Final = "llm_gpu_tensor_active_ratio"
GPU_PIPE_ACTIVE_RATIO: Final = "llm_gpu_pipe_active_ratio"  # + pipe; the mean
GPU_DRAM_BANDWIDTH_RATIO: Final = "llm_gpu_dram_bandwidth_ratio"
GPU_BOUND: Final = "llm_gpu_bound"  # + kind: one of BOUND_KINDS; 1 for the one that holds
GPU_WORK_PER_BYTE_RATIO: Final = "llm_gpu_work_per_byte_ratio"
BOUND_COMPUTE: Final = "compute"
BOUND_MEMORY: Final = "memory"
BOUND_IDLE: Final = "idle"
BOUND_OTHER: Final = "other"
BOUND_KINDS: Final = (BOUND_COMPUTE, BOUND_MEMORY, BOUND_IDLE, BOUND_OTHER)

# Engine × GPU, engine × CPU. Labels instance, dp_rank, node; the engine core's main loop thread.
ENGINE_GPU_INFO: Final = "llm_engine_gpu_info"  # instance, dp_rank, uuid, node
ENGINE_CORE_STATE: Final = "llm_engine_core_seen"  # 1; + model, pid
ENGINE_CORE_BUSY_SECONDS_TOTAL: Final = "llm_engine_core_busy_seconds_total"
ENGINE_CORE_WALL_SECONDS_TOTAL: Final = "llm_engine_core_wall_seconds_total"
ENGINE_CORE_ON_MASK_SECONDS_TOTAL: Final = "llm_engine_core_on_mask_seconds_total"
ENGINE_CORE_BOUND_CPUS: Final = "llm_engine_core_bound_cpus"  # 0: not bound
ENGINE_CORE_BOUND_CPUS_BUSY_SECONDS_TOTAL: Final = "llm_engine_core_bound_cpus_busy_seconds_total"
ENGINE_CORE_MIGRATIONS_TOTAL: Final = "llm_engine_core_migrations_total"
ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL: Final = "llm_engine_core_runqueue_seconds_total"
ENGINE_CORE_CONTEXT_SWITCHES_TOTAL: Final = "llm_engine_core_context_switches_total"  # + kind
ENGINE_CORE_NUMA_NODE: Final = "llm_engine_core_numa_node"
ENGINE_THREAD_CPU_SECONDS_TOTAL: Final = "llm_engine_thread_cpu_seconds_total"  # + thread
ENGINE_CORE_RESIDENT_BYTES: Final = "llm_engine_core_resident_bytes"

# cgroup v2, a container or tenant each. Labels tenant, cgroup, node.
CGROUP_STATE: Final = "llm_node_cgroup_state"  # state: one of CGROUP_STATES
CGROUP_STATES: Final = ("v2", "hybrid", "v1", "absent")
CGROUP_MEMORY_BYTES: Final = "llm_cgroup_memory_bytes"
CGROUP_MEMORY_LIMIT_BYTES: Final = "llm_cgroup_memory_limit_bytes"  # + limit: max, high; absent when "max"
CGROUP_MEMORY_EVENTS_TOTAL: Final = "llm_cgroup_memory_events_total"  # + event
CGROUP_CPU_SECONDS_TOTAL: Final = "llm_cgroup_cpu_seconds_total"  # + mode
CGROUP_CPU_LIMIT_CORES: Final = "llm_cgroup_cpu_limit_cores"
CGROUP_CPU_PERIODS_TOTAL: Final = "llm_cgroup_cpu_periods_total"
CGROUP_CPU_THROTTLED_PERIODS_TOTAL: Final = "llm_cgroup_cpu_throttled_periods_total"
CGROUP_CPU_THROTTLED_SECONDS_TOTAL: Final = "llm_cgroup_cpu_throttled_seconds_total"
CGROUP_PRESSURE_SECONDS_TOTAL: Final = "llm_cgroup_pressure_seconds_total"  # + resource, share
HOST_PRESSURE_SECONDS_TOTAL: Final = "llm_host_pressure_seconds_total"  # + resource, share
HOST_PRESSURE_READABLE: Final = "llm_node_pressure_readable"
HOST_CPUS: Final = "llm_host_cpus"
HOST_CPU_BUSY_SECONDS_TOTAL: Final = "llm_host_cpu_busy_seconds_total"
HOST_MEMORY_AVAILABLE_BYTES: Final = "llm_host_memory_available_bytes"
HOST_MEMORY_TOTAL_BYTES: Final = "llm_host_memory_total_bytes"
