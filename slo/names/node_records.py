"""Series that the node's rules write. GPU series read the same whoever measured: ours, dcgm-exporter,
nvidia_gpu_exporter. A GPU's labels: instance (of what measured), uuid, gpu, gpu_model, pci_bus_id.
"""

from typing import Final

# One GPU.
GPU_UTILISATION: Final = "inferwatch:gpu_utilisation:ratio"
GPU_ACTIVE: Final = "inferwatch:gpu_active:ratio"
"""Share of SMs (else of time) that worked: the truest there is; none for MIG parents."""
GPU_TENSOR: Final = "inferwatch:gpu_tensor:ratio"
GPU_DRAM: Final = "inferwatch:gpu_dram_bandwidth:ratio"
GPU_MEMORY_USED: Final = "inferwatch:gpu_memory_used:ratio"
"""Used over what can be used; what the driver reserves is in neither."""
GPU_MEMORY_SETTLED: Final = "inferwatch:gpu_memory_settled:ratio"
"""The same, only while the reading is settled."""
GPU_HELD: Final = "inferwatch:gpu_held:ratio"
"""Share of time that clocks were held back, with cause="thermal|power_brake|power_cap"."""
GPU_XIDS: Final = "inferwatch:gpu_xids:increase"
"""XID events within node.alerts.xid_window, with class="hardware|application"."""
GPU_ECC: Final = "inferwatch:gpu_ecc_uncorrected:increase"
GPU_REMAP_FAILED: Final = "inferwatch:gpu_row_remap_failed:bool"
GPU_REMAP_PENDING: Final = "inferwatch:gpu_row_remap_pending:bool"
GPUS_MISSING: Final = "inferwatch:gpus_missing:count"
"""One series an exporter (instance)."""

# One engine core: instance (the engine's), dp_rank, node.
ENGINE_GPU: Final = "inferwatch:engine_gpu:info"
"""1; with uuid."""
CORE_BINDING: Final = "inferwatch:engine_core_binding:ratio"
CORE_RUNQUEUE: Final = "inferwatch:engine_core_runqueue:ratio"
CORE_OTHERS: Final = "inferwatch:engine_core_cpus_taken_by_others:ratio"
CORE_GPU_ACTIVE: Final = "inferwatch:engine_gpu_active:ratio"
"""The busiest of the engine core's GPUs."""
GPU_WAITS: Final = "inferwatch:engine_gpu_waits_for_cpu:ratio"
CPU_WAITS: Final = "inferwatch:engine_cpu_waits_for_gpu:ratio"

# One engine instance: service, model, instance, sli.
INSTANCE_LATENCY: Final = "inferwatch:instance_latency_seconds:quantile"
INSTANCE_LATENCY_RISE: Final = "inferwatch:instance_latency_rise:ratio"
"""Over the mean of the hour before: 0.2 is a fifth slower."""

# One tenant: tenant, cgroup, node.
TENANT_THROTTLED: Final = "inferwatch:tenant_cpu_throttled:ratio"
TENANT_MEMORY_STALLED: Final = "inferwatch:tenant_memory_stalled:ratio"
