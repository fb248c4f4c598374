"""The uid of every dashboard: links, runbooks and notifications point at these, so they never change."""

from typing import Final

SLO_UID: Final = "inferwatch-slo"
ENGINE_UID: Final = "inferwatch-engine"
BATCHING_UID: Final = "inferwatch-batching"
KV_CACHE_UID: Final = "inferwatch-kv-cache"
LOAD_UID: Final = "inferwatch-load"
STACK_UID: Final = "inferwatch-stack"
GPU_UID: Final = "inferwatch-gpu-host"
DRIFT_UID: Final = "inferwatch-drift"
NODE_UID: Final = "inferwatch-node-detail"
RAG_UID: Final = "inferwatch-rag"
COLLECTOR_UID: Final = "inferwatch-collector"
EXPORTERS_UID: Final = "inferwatch-exporters"
CHIP_UID: Final = "inferwatch-chip"
